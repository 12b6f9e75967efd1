package broker

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting/remotingtest"
	"rocketd/store/vfs"
)

// recorded is a request of stock software, from conformance/testdata/recordings.
type recorded struct {
	Ep, Dir, Kind string
	Code          int32
	Flag, Version int32
	ExtFields     map[string]string
	Body          []byte
}

// recordedRequests are the first recorded requests of each code to a broker.
func recordedRequests(tb testing.TB) (all []recorded) {
	tb.Helper()
	files, err := filepath.Glob("../conformance/testdata/recordings/*.gz")
	if err != nil || len(files) == 0 {
		tb.Fatal("no recordings: ", err)
	}
	seen := map[int32]bool{}
	for _, name := range files {
		if strings.Contains(name, "bigzlib") {
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			tb.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			tb.Fatal(err)
		}
		for lines := bufio.NewReader(z); ; {
			line, err := lines.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				tb.Fatal(err)
			}
			var r recorded
			if err := json.Unmarshal(line, &r); err != nil {
				tb.Fatal(err)
			}
			if r.Dir == "c2s" && strings.HasPrefix(r.Kind, "request") && !seen[r.Code] && len(r.Body) < 4096 {
				seen[r.Code] = true
				all = append(all, r)
			}
		}
		f.Close()
	}
	return all
}

// quietBroker is startPathBroker without a log: a fuzz target may not write to that of its test.
func quietBroker(f *testing.F, tweak func(*Config)) *pathBroker {
	f.Helper()
	cfg := pathConfig(tweak)
	fs := vfs.NewMem(time.Now)
	b, err := New(cfg, Options{Log: slog.New(slog.DiscardHandler), FS: fs, Files: vfs.Files{FS: fs}})
	if err == nil {
		err = b.Start()
	}
	if err != nil {
		f.Fatal(err)
	}
	p := &pathBroker{Broker: b, tb: f, fs: fs}
	f.Cleanup(p.close)
	p.peer = p.dial()
	return p
}

// FuzzRequests sends any ext fields and any body by every code that a broker serves, in either form: no handler panics, the
// broker serves the next request, and an answer that comes has the opaque of its request.
func FuzzRequests(f *testing.F) {
	for _, r := range recordedRequests(f) {
		text, err := json.Marshal(r.ExtFields)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(r.Code), r.Flag&protocol.FlagOneway != 0, string(text), r.Body)
	}
	p := quietBroker(f, func(c *Config) { c.EnablePropertyFilter, c.EnableConsumeQueueExt = true, true })
	p.send("BenchmarkTest", 0, "KEYS\x01k\x02", "message")
	codes := p.mux.Codes()
	f.Fuzz(func(t *testing.T, code uint16, binary bool, fields string, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		req := protocol.NewRequest(protocol.RequestCode(code), nil, body)
		if p.mux.Plans()[protocol.RequestCode(code)] == nil {
			req.Code = int32(codes[int(code)%len(codes)])
		}
		switch protocol.RequestCode(req.Code) {
		case protocol.UpdateBrokerConfig, protocol.DeleteExpiredCommitLog: // what they do to the broker stays; they have tests of their own
			return
		}
		var ext map[string]string
		if json.Unmarshal([]byte(fields), &ext) != nil {
			ext = map[string]string{"topic": fields, "consumerGroup": fields, "group": fields}
		}
		for k, v := range ext {
			if k != "" && len(k)+len(v) < 1<<14 {
				req.SetField(k, v)
			}
		}
		if binary {
			req.Serialize = protocol.Binary
		}
		peer := remotingtest.Dial(t, remotingtest.Addr(p.server))
		defer peer.Close()
		req.Opaque = 1
		peer.Send(req)
		ping := p.request(protocol.GetMaxOffset, &header.GetMaxOffsetRequest{Topic: "BenchmarkTest"}, nil)
		ping.Opaque = 2
		peer.Send(ping)
		for {
			a := peer.Receive()
			if !a.IsResponse() { // a change of a group, for instance
				continue
			}
			if a.Opaque == 2 {
				break
			}
			if a.Opaque != 1 {
				t.Fatalf("an answer to %d: %+v", a.Opaque, a)
			}
		}
		if n := p.server.Stats().Panics; n > 0 {
			t.Fatalf("code %d: a handler panicked", req.Code)
		}
	})
}

// FuzzConfig reads any text as a broker.conf: it ends in a configuration, which shows itself as text that is read as the
// same, or in an error.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("brokerClusterName = DefaultCluster\nbrokerName = broker-a\nbrokerId = 0\ndeleteWhen = 04\nfileReservedTime = 48\nbrokerRole = ASYNC_MASTER\nflushDiskType = ASYNC_FLUSH\n"))
	f.Add([]byte("namesrvAddr=a:9876;\\\n  b:9876\n# comment\n! another\nautoCreateTopicEnable : FALSE\nsomeVendorKey \\u00e4=\\u0001\n"))
	f.Add([]byte("messageDelayLevel=1s 5s\nmaxMessageSize=99999999999999999999\nstorePathRootDir=${user.home}/x\ntls.server.mode=enforcing\nadminAllowedNetworks=10.0.0.0/8\n"))
	f.Add([]byte("listenPort=-1\nbrokerIP1=::1\nmaxTopics=1e3\naclEnable=maybe\nbindAddress=\x00\n=\n:\n\\"))
	f.Add([]byte("\xba\n\x90"))
	usual := map[string]string{"": "\x00"}
	defaults := DefaultConfig("/store")
	for _, kv := range defaults.Items() {
		usual[kv.Key] = kv.Value
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, err := DefaultConfig("/store").merge(text, "broker.conf")
		if err != nil {
			if !strings.Contains(err.Error(), "broker.conf") {
				t.Fatalf("an error that does not name the file: %v", err)
			}
			return
		}
		_ = cfg.Validate() // any error, no panic
		if !utf8.Valid(text) {
			return // texts that differ are shown alike
		}
		show := func(c Config) (text []byte) {
			for _, kv := range c.Items() {
				if usual[kv.Key] == kv.Value {
					continue
				}
				text = compat.AppendProperty(text, kv.Key, kv.Value)
			}
			return text
		}
		once := show(cfg)
		again, err := DefaultConfig("/store").merge(once, "broker.conf")
		if err != nil {
			t.Fatalf("what %q became can't be read again: %v", text, err)
		}
		if twice := show(again); !bytes.Equal(once, twice) {
			t.Fatalf("%q shows itself as %q, and that as %q", text, once, twice)
		}
	})
}
