package broker

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// onLog makes an inject func that fails operations of a kind on files of the commit log.
func onLog(kind vfs.Kind, err func() error) func(vfs.Op) error {
	return func(op vfs.Op) error {
		if op.Kind == kind && strings.Contains(op.Name, "commitlog") {
			return err()
		}
		return nil
	}
}

// faultBroker starts a broker on files that fail as told, and stores one message before they do.
func faultBroker(t *testing.T, tweak func(*Config)) (*pathBroker, *vfs.Fault) {
	t.Helper()
	f := vfs.NewFault(vfs.NewMem(time.Now), nil)
	b := startPathBrokerOn(t, f, tweak)
	b.failing = true
	b.send("T", 0, "", "before")
	b.stored("T", 0, 0, 1)
	return b, f
}

// TestDiskErrors: a send that can't be written is answered with an error, and the messages before can be read.
func TestDiskErrors(t *testing.T) {
	for _, c := range []struct {
		errno  syscall.Errno
		code   protocol.ResponseCode
		remark string
	}{
		{syscall.ENOSPC, protocol.ServiceNotAvailable, "service not available now. It may be caused by one of the following reasons: the broker's disk is full [CL: *"},
		{syscall.EIO, protocol.SystemError, "UNKNOWN_ERROR"},
	} {
		b, f := faultBroker(t, nil)
		f.SetInject(onLog(vfs.OpWrite, func() error { return c.errno }))
		a := b.ask(protocol.SendMessage, sendHeader("T", 0, ""), []byte("x"))
		check(t, c.errno.Error(), a, c.code, c.remark, "MSG_REGION", "TRACE_ON")
		if ms := b.stored("T", 0, 0, 1); len(ms) != 1 || string(ms[0].Body) != "before" {
			t.Errorf("%v: %d messages", c.errno, len(ms))
		}
	}
}

// TestFailedEnd: an end of a transaction that can't be stored counts as a failure, and not as a message.
func TestFailedEnd(t *testing.T) {
	b, f := faultBroker(t, nil)
	h := b.half("T", 0, tran, "half")
	f.SetInject(onLog(vfs.OpWrite, func() error { return syscall.ENOSPC }))
	put, failed := b.stats.putTimes.Load(), b.stats.putFailed.Load()
	check(t, "commit", b.ask(protocol.EndTransaction, h, nil), protocol.ServiceNotAvailable, "Service not available now.")
	rollback := end(h, func(h *header.EndTransactionRequest) { h.CommitOrRollback = message.TransactionRollback })
	check(t, "rollback", b.ask(protocol.EndTransaction, rollback, nil), protocol.Success, unsetRemark)
	if put, failed = b.stats.putTimes.Load()-put, b.stats.putFailed.Load()-failed; put != 0 || failed != 2 {
		t.Errorf("%d messages and %d failures counted, want 0 and 2", put, failed)
	}
}

// TestLogFileCannotBeMade: the official answer to a send that needs a file of the log that can't be made.
func TestLogFileCannotBeMade(t *testing.T) {
	f := vfs.NewFault(vfs.NewMem(time.Now), nil)
	b := startPathBrokerOn(t, f, nil)
	b.failing = true
	f.SetInject(onLog(vfs.OpCreate, func() error { return syscall.EFBIG }))
	check(t, "no file", b.ask(protocol.SendMessage, sendHeader("T", 0, ""), []byte("x")), protocol.SystemError,
		"create mapped file failed, server is busy or broken.", "MSG_REGION", "TRACE_ON")
	f.SetInject(nil)
	check(t, "goes on", b.ask(protocol.SendMessage, sendHeader("T", 0, ""), []byte("x")), protocol.Success, "", sendFields...)
}

// TestLimitOfFreeBytes: the remark of a refusal ends with its cause.
func TestLimitOfFreeBytes(t *testing.T) {
	t.Parallel()
	b := startPathBroker(t, func(c *Config) { c.DiskMinFreeBytes = 1 << 62 })
	remotingtest.Eventually(t, "the disk has been looked at", func() bool { return b.store.Writable() != nil })
	a := b.ask(protocol.SendMessage, sendHeader("T", 0, ""), []byte("x"))
	check(t, "send", a, protocol.ServiceNotAvailable, "service not available now.*", "MSG_REGION", "TRACE_ON")
	if !strings.Contains(a.Remark, "etc. Cause: store: the disk is nearly full: ") || !strings.HasSuffix(a.Remark, "bytes of the disk are free, diskMinFreeBytes is 4611686018427387904") {
		t.Errorf("remark %q", a.Remark)
	}
}

// TestFlushErrors: with sync flush a message that is not durable is answered FLUSH_DISK_TIMEOUT, with its place.
func TestFlushErrors(t *testing.T) {
	b, f := faultBroker(t, func(c *Config) { c.FlushDiskType = "SYNC_FLUSH" })
	f.SetInject(onLog(vfs.OpSync, func() error { return syscall.EIO }))
	check(t, "fsync fails", b.ask(protocol.SendMessage, sendHeader("T", 0, ""), []byte("x")), protocol.FlushDiskTimeout, "", sendFields...)
}

// TestFlushTimeout: a flush that takes longer than syncFlushTimeout; a send that does not wait is answered at once.
func TestFlushTimeout(t *testing.T) {
	t.Parallel()
	b, f := faultBroker(t, func(c *Config) { c.FlushDiskType, c.SyncFlushTimeout = "SYNC_FLUSH", 50 })
	goOn := make(chan struct{})
	f.SetInject(onLog(vfs.OpSync, func() error { <-goOn; return nil }))
	defer close(goOn)
	check(t, "slow fsync", b.ask(protocol.SendMessage, sendHeader("T", 0, ""), []byte("x")), protocol.FlushDiskTimeout, "", sendFields...)
	check(t, "does not wait", b.ask(protocol.SendMessage, sendHeader("T", 0, "WAIT=false"), []byte("x")), protocol.Success, "", sendFields...)
	var data []byte
	data = message.AppendElement(data, message.Element{Body: []byte("x")})
	h := sendHeader("T", 0, "")
	h.Batch = true
	check(t, "batch", b.ask(protocol.SendBatchMessage, h, data), protocol.FlushDiskTimeout, "", sendFields...)
}

// TestPageCacheBusy: while the append lock has been held too long, sends and send-backs are refused before anything
// else is looked at.
func TestPageCacheBusy(t *testing.T) {
	b, f := faultBroker(t, func(c *Config) { c.OsPageCacheBusyTimeOutMills = 20 })
	goOn, writing := make(chan struct{}), atomic.Bool{}
	f.SetInject(onLog(vfs.OpWrite, func() error { writing.Store(true); <-goOn; return nil }))
	slow := b.request(protocol.SendMessage, sendHeader("T", 0, ""), []byte("slow"))
	b.peer.Send(slow)
	remotingtest.Eventually(t, "the lock is held too long", func() bool { return writing.Load() && b.store.PageCacheBusy() })
	other := b.dial()
	for _, code := range []protocol.RequestCode{protocol.SendMessage, protocol.SendMessageV2, protocol.SendBatchMessage} {
		check(t, code.String(), other.Ask(b.request(code, sendHeader("a/b", 0, ""), nil)), protocol.SystemBusy, rejectRemark)
	}
	back := b.request(protocol.ConsumerSendMsgBack, sendBackHeader("g", 0), nil)
	check(t, "send back", other.Ask(back), protocol.SystemBusy, rejectRemark)
	close(goOn)
	if a := b.peer.Receive(); a.Code != 0 || a.Opaque != slow.Opaque {
		t.Errorf("the slow send: code %d, %q", a.Code, a.Remark)
	}
}
