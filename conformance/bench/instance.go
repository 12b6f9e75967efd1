package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"syscall"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

type kind = target.Kind

// patience bounds every single answer.
const patience = 30 * time.Second

// jvmOptions make of the harness' official broker, which is set to start fast for tests, one that is set to run: the
// optimising compiler, a heap that it may use. (The JVM takes this variable after its command line.) The serial
// collector stays: on two cores shared with a load generator it costs the least.
const jvmOptions = "-XX:TieredStopAtLevel=4 -Xms128m -Xmx1g"

// instance is one server under measurement.
type instance struct {
	*target.Target
	firstAnswer time.Duration // from the start of its processes to the first answered send
	idle        int64         // bytes of anonymous memory before any load
	pullable    bool          // the topic bench has messages to pull
	filled      bool          // the log is filled, see fill
}

// fileSizes are those that a broker has by default, not the harness' small ones.
var fileSizes = map[string]string{
	"mappedFileSizeCommitLog": "1073741824", "maxHashSlotNum": "5000000", "maxIndexNum": "20000000", "autoCreateTopicEnable": "true",
}

// startInstance starts a server on a fresh store, the broker with the sizes of files that it has by default.
func startInstance(ctx context.Context, kind kind, more map[string]string) (_ *instance, err error) {
	for name, value := range map[string]string{"CONFORMANCE_TARGET": string(kind), "_JAVA_OPTIONS": jvmOptions} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	conf := maps.Clone(fileSizes)
	maps.Copy(conf, more)
	t, err := target.StartMain(target.Options{Kind: kind, Brokers: []target.BrokerOptions{{Conf: conf}}})
	if err != nil {
		return nil, err
	}
	in := &instance{Target: t}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.close())
		}
	}()
	if err := t.Brokers[0].Stop(); err != nil {
		return nil, err
	}
	if err := t.NameServers[0].Stop(); err != nil {
		return nil, err
	}
	in.firstAnswer, err = in.startAgain(ctx)
	return in, err
}

// startAgain starts the stopped name server, and as soon as that answers, the broker, and returns the time until the
// broker has answered a send. The harness looks at its servers every 50 ms; this looks all the time.
func (in *instance) startAgain(ctx context.Context) (time.Duration, error) {
	n, b := in.NameServers[0], in.Brokers[0]
	started := make(chan error, 2)
	begin := time.Now()
	go func() { started <- n.Start() }()
	if err := await(ctx, n.Addr, wire.Request(106)); err != nil {
		return 0, fmt.Errorf("name server: %w", err)
	}
	go func() { started <- b.Start() }()
	// BenchmarkTest is there on every broker.
	if err := await(ctx, b.Addr, sendRequest("BenchmarkTest", 0, 128)); err != nil {
		return 0, fmt.Errorf("broker: %w", err)
	}
	took := time.Since(begin)
	return took, errors.Join(<-started, <-started)
}

// await repeats a request until it succeeds.
func await(ctx context.Context, addr string, f *wire.Frame) error {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if r, err := wire.CallOnce(addr, f, patience); err == nil && r.Code == 0 {
			return nil
		}
	}
	return errors.Join(errors.New("no good answer in two minutes"), ctx.Err())
}

// close ends the server, removes its store, and lets the disk come to rest before the next one is measured.
func (in *instance) close() error {
	err := in.Close()
	syscall.Sync()
	return err
}

func (in *instance) addr() string { return in.Brokers[0].Addr }
func (in *instance) pid() int     { return in.Brokers[0].Pid() }

func (in *instance) createTopic(topic string, queues int) error {
	n := strconv.Itoa(queues)
	f, err := wire.CallOnce(in.addr(), wire.Request(17, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", n, "writeQueueNums", n,
		"perm", "6", "topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false"), patience)
	if err != nil {
		return err
	}
	if f.Code != 0 {
		return fmt.Errorf("create topic: %d %s", f.Code, f.Remark)
	}
	end := time.Now().Add(patience)
	for time.Now().Before(end) {
		if f, err := wire.CallOnce(in.NameServers[0].Addr, wire.Request(105, "topic", topic), patience); err == nil && f.Code == 0 {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("topic %s is not routed", topic)
}
