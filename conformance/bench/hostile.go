package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"rocketd/conformance/wire"
)

// What one peer who means harm can do to those who send beside it. Each attack comes from a process of its own, over one
// connection at a time (a new one when the server has closed it), as fast as that goes. The same bytes to a sink, a process
// that reads and drops them, show how much of the harm is the machine's: attacker, load and server share its processors.

// attacks are the kinds, in the order of the table.
var attacks = []struct{ name, what string }{
	{"half frames", "heartbeats of 16 MiB that end one byte early"},
	{"nonsense", "requests of no known code with 50 nonsense fields, their answers dropped"},
	{"unread answers", "requests for the whole configuration, whose answers are never read"},
	{"deep JSON", "heartbeats of 256 KiB, nested as deep as they are long"},
	{"large heartbeats", "heartbeats of 1 MiB, with a subscription of as many tags"},
}

var hostileMetrics = func() (lines []metric) {
	for _, a := range attacks {
		lines = append(lines,
			metric{"hostile " + a.name + ": p99 of sends, alone", "ms", none, 3},
			metric{"hostile " + a.name + ": p99 of sends, beside", "ms", none, 3},
			metric{"hostile " + a.name + ": p99, beside/alone", "", ownAtMost(2), 2},
			metric{"hostile " + a.name + ": p99, beside/beside a sink", "", none, 2},
			metric{"hostile " + a.name + ": memory anonymous, beside", "MiB", none, 0})
	}
	return lines
}()

// hostileTurns is how often each of the three loads is measured: the machine changes from one second to the next.
const hostileTurns = 3

// hostile is a server that one peer after the other does harm to.
func hostile() group {
	g := group{warm: true}
	for _, a := range attacks {
		g.steps = append(g.steps, step{"hostile " + a.name, func(in *instance, ctx context.Context, s settings, note func(string, float64)) error {
			return in.measureHostile(ctx, s, a.name, note)
		}})
	}
	return g
}

// measureHostile measures sends alone, beside an attack on the server, and beside the same attack on a sink, in turns.
func (in *instance) measureHostile(ctx context.Context, s settings, attack string, note func(string, float64)) error {
	const topic = "hostile"
	if err := in.createTopic(topic, 4); err != nil {
		return err
	}
	load := sendLoad{topic: topic, queues: 4, connections: 2, inFlight: 1, body: 128, duration: s.phase, most: 1 << 40}
	var alone, beside, sink, memory []float64
	for turn := range hostileTurns + 1 {
		a, err := in.send(ctx, load)
		if err != nil {
			return err
		}
		b, err := in.sendBeside(ctx, load, attack, in.addr())
		if err != nil {
			return err
		}
		c, err := in.sendBeside(ctx, load, attack, attackSink)
		if err != nil {
			return err
		}
		if turn == 0 {
			continue // warms up
		}
		alone, beside, sink, memory = append(alone, a.latency(99)), append(beside, b.latency(99)), append(sink, c.latency(99)), append(memory, float64(b.memory)/mib)
	}
	for _, values := range [][]float64{alone, beside, sink, memory} {
		slices.Sort(values)
	}
	const middle = hostileTurns / 2
	name := "hostile " + attack + ": "
	note(name+"p99 of sends, alone", alone[middle])
	note(name+"p99 of sends, beside", beside[middle])
	note(name+"p99, beside/alone", beside[middle]/alone[middle])
	note(name+"p99, beside/beside a sink", beside[middle]/sink[middle])
	note(name+"memory anonymous, beside", memory[hostileTurns-1])
	return nil
}

// attackEnv tells a process of this program that it is an attacker: the kind, and the address; attackSink, that it is the sink.
const (
	attackEnv  = "ROCKETD_BENCH_ATTACK"
	attackSink = "sink"
)

// sendBeside is send while an attack goes on, on an address or a sink of its own.
func (in *instance) sendBeside(ctx context.Context, load sendLoad, kind, addr string) (_ outcome, err error) {
	if addr == attackSink {
		sink, out, err := startSelf(ctx, attackSink)
		if err != nil {
			return outcome{}, err
		}
		defer sink.stop(&err)
		if addr, err = out.line(); err != nil {
			return outcome{}, err
		}
	}
	attacker, out, err := startSelf(ctx, kind+"@"+addr)
	if err != nil {
		return outcome{}, err
	}
	defer attacker.stop(&err)
	if _, err := out.line(); err != nil { // it has begun
		return outcome{}, err
	}
	return in.send(ctx, load)
}

// child is a process of this program.
type child struct{ *exec.Cmd }

// stop ends it; one that has ended by itself has failed.
func (c child) stop(err *error) {
	if kerr := c.Process.Kill(); kerr != nil && *err == nil {
		*err = fmt.Errorf("the attacker has ended: %w", kerr)
	}
	_ = c.Wait() // it was killed
}

// lines reads what a child says.
type lines struct{ r io.Reader }

func (l lines) line() (string, error) {
	var text []byte
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(l.r, one); err != nil {
			return "", fmt.Errorf("the attacker says nothing: %w", err)
		}
		if one[0] == '\n' {
			return string(text), nil
		}
		text = append(text, one[0])
	}
}

func startSelf(ctx context.Context, what string) (child, lines, error) {
	self, err := os.Executable()
	if err != nil {
		return child{}, lines{}, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), attackEnv+"="+what, "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return child{}, lines{}, err
	}
	if err := cmd.Start(); err != nil {
		return child{}, lines{}, err
	}
	return child{cmd}, lines{out}, nil
}

// beAttacker is the life of such a process; it never returns when there is one to be.
func beAttacker() error {
	what := os.Getenv(attackEnv)
	if what == "" {
		return nil
	}
	if what == attackSink {
		return beSink()
	}
	kind, addr, _ := strings.Cut(what, "@")
	load, drop := attackBytes(kind)
	if load == nil {
		return fmt.Errorf("no attack %q", kind)
	}
	fmt.Println("begun")
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		if drop {
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
		for err == nil {
			_, err = conn.Write(load)
			if kind == "half frames" && err == nil {
				break
			}
		}
		conn.Close()
	}
}

func beSink() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			_, err := io.Copy(io.Discard, conn)
			if err := errors.Join(err, conn.Close()); err != nil {
				fmt.Fprintln(os.Stderr, "sink:", err)
			}
		}()
	}
}

// attackBytes are what an attacker writes again and again, and whether it drops the answers or leaves them unread.
func attackBytes(kind string) (load []byte, drop bool) {
	repeat := func(f *wire.Frame, n int) []byte { return bytes.Repeat(f.Encode(), n) }
	switch kind {
	case "half frames":
		load = wire.Request(34).WithBody(make([]byte, 16<<20-1000)).Encode()
		return load[:len(load)-1], true
	case "nonsense":
		f := wire.Request(7777)
		for i := range 50 {
			f.Set("field"+strconv.Itoa(i), strings.Repeat("x", 20))
		}
		return repeat(f, 100), true
	case "unread answers":
		return repeat(wire.Request(26), 1000), false
	case "deep JSON":
		n := 128 << 10
		return repeat(wire.Request(34).WithBody([]byte(strings.Repeat("[", n)+strings.Repeat("]", n))), 4), true
	case "large heartbeats":
		var tags strings.Builder
		for i := 0; tags.Len() < 1<<20; i++ {
			fmt.Fprintf(&tags, `"tag%d",`, i)
		}
		return repeat(wire.Request(34).WithBody([]byte(`{"clientID":"hostile","consumerDataSet":[{"groupName":"hostile","consumeType":"CONSUME_PASSIVELY",
"messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","subscriptionDataSet":[{"topic":"hostile","subString":"*","tagsSet":[`+
			strings.TrimSuffix(tags.String(), ",")+`],"codeSet":[],"subVersion":1}]}],"producerDataSet":[]}`)), 1), true
	}
	return nil, false
}
