//go:build conformance

package differential

import (
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// patience bounds the wait for an answer that must come. A JVM that compiles while it answers needs some.
const patience = time.Minute

// silence is how long a server is listened to that must say nothing.
const silence = 700 * time.Millisecond

// server is the one cluster of these tests. It carries the names of the recorded one, so that answers can be compared.
var server *target.Target

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait far more than they work; the default of one test a CPU would make them queue for it.
	if err := flag.Set("test.parallel", "64"); err != nil {
		panic(err)
	}
	os.Exit(target.RunMain(m, target.Options{Brokers: []target.BrokerOptions{{Name: "oracle-a", Cluster: "OracleCluster", Conf: map[string]string{
		"autoCreateTopicEnable": "true",
		// What rocketd does not have yet, it refuses as an official broker that has it switched off.
		"rejectTransactionMessage": "true",
		"enablePropertyFilter":     "false",
	}}}}, func(t *target.Target) { server = t }))
}

func broker() string   { return server.Brokers[0].Addr }
func fastPort() string { return fmt.Sprintf("127.0.0.1:%d", server.Brokers[0].Port()-2) }
func namesrv() string  { return server.Namesrv }

// anyRemark stands for a text of the server's own: where the official server ends in an exception, its text names
// Java classes and source lines.
const anyRemark = "(any)"

// answer is what a server must say to a request.
type answer struct {
	code   int
	remark string // "" = none; a "*" at its end stands for the rest
	ext    string // the ext fields' names, sorted; "{}" = an empty extFields; "" = no extFields
}

// failure is the answer where the official server ends in an exception.
var failure = answer{code: 1, remark: anyRemark}

// matches returns what is wrong with a server's answer, "" when nothing is.
func (a answer) matches(f *wire.Frame) string {
	var wrong []string
	if f.Code != a.code {
		wrong = append(wrong, fmt.Sprintf("code %d, want %d", f.Code, a.code))
	}
	start, open := strings.CutSuffix(a.remark, "*")
	switch {
	case a.remark == anyRemark && f.Remark == "":
		wrong = append(wrong, "no remark")
	case a.remark == anyRemark, open && strings.HasPrefix(f.Remark, start), f.Remark == a.remark:
	default:
		wrong = append(wrong, fmt.Sprintf("remark %q, want %q", f.Remark, a.remark))
	}
	ext := strings.Join(f.ExtNames(), " ")
	want := a.ext
	if f.Ext != nil && ext == "" {
		ext = "{}"
	}
	if f.Form == wire.Binary && want == "{}" {
		want = "" // the compact form cannot tell the two apart
	}
	if ext != want {
		wrong = append(wrong, fmt.Sprintf("ext fields %q, want %q", ext, want))
	}
	if f.Flag != wire.FlagResponse {
		wrong = append(wrong, fmt.Sprintf("flag %d", f.Flag))
	}
	if f.Language != "JAVA" {
		wrong = append(wrong, "language "+f.Language)
	}
	return strings.Join(wrong, "; ")
}

// expect makes one call and checks the answer.
func expect(t *testing.T, addr string, request *wire.Frame, want answer) *wire.Frame {
	t.Helper()
	f, err := wire.CallOnce(addr, request, patience)
	if err != nil {
		t.Errorf("request %d %q: %v", request.Code, request.Ext, err)
		return nil
	}
	if wrong := want.matches(f); wrong != "" {
		t.Errorf("request %d %.300q: %s (remark %.300q)", request.Code, request.Ext, wrong, f.Remark)
	}
	return f
}

// eitherForm runs a case with JSON headers and with compact binary ones.
func eitherForm(t *testing.T, run func(t *testing.T, form byte)) {
	t.Helper()
	t.Run("form", func(t *testing.T) { // returns when both are done
		t.Run("JSON", func(t *testing.T) { t.Parallel(); run(t, wire.JSON) })
		t.Run("ROCKETMQ", func(t *testing.T) { t.Parallel(); run(t, wire.Binary) })
	})
}

func dial(t *testing.T, addr string) *wire.Conn {
	t.Helper()
	c, err := wire.Dial(addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func words(text string) []string { return strings.Fields(text) }

func among(list, word string) bool { return slices.Contains(words(list), word) }

func itoa(n int) string { return strconv.Itoa(n) }

// newRawConn is a connection that nobody reads from or interprets, with a deadline.
func newRawConn(addr string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Now().Add(2 * patience))
}

// waitRouted waits until the name server knows the topic.
func waitRouted(t *testing.T, topic string) {
	t.Helper()
	c := dial(t, namesrv())
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for end := time.Now().Add(patience); ; <-every.C {
		f, err := c.Call(wire.Request(105, "topic", topic), patience)
		if err != nil {
			t.Fatal(err)
		}
		if f.Code == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("topic %s is not routed: %d %s", topic, f.Code, f.Remark)
		}
	}
}
