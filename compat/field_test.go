package compat

import (
	"reflect"
	"strings"
	"testing"
)

type flush string

type netConfig struct {
	ListenPort int
	Shared     int32
}

type config struct {
	FlushDiskType flush
	BrokerId      int64
	MaxSize       int32
	TraceOn       bool
	Ratio         float64
	Renamed       string `rmq:"tls.server.mode"`
	Hidden        string `rmq:"-"`
	Shared        int32
	secret        string
	list          []string
	netConfig
}

func TestBindProperties(t *testing.T) {
	p, err := ParseProperties([]byte("flushDiskType=SYNC_FLUSH\nbrokerId=7 \nmaxSize=-1\ntraceOn=TRUE\nratio=0.75\ntls.server.mode=disabled\n" +
		"listenPort= 10911\nshared=3\nzzz=1\nhidden=x\nFlushDiskType=no\nsecret=s\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := config{secret: "kept"}
	unknown, err := BindProperties(p, &c)
	want := config{FlushDiskType: "SYNC_FLUSH", BrokerId: 7, MaxSize: -1, TraceOn: true, Ratio: 0.75, Renamed: "disabled", Shared: 3, secret: "kept", netConfig: netConfig{10911, 3}}
	if err != nil || !reflect.DeepEqual(c, want) {
		t.Errorf("bound %+v, %v; want %+v", c, err, want)
	}
	if want := []string{"zzz", "hidden", "FlushDiskType", "secret"}; !reflect.DeepEqual(unknown, want) {
		t.Errorf("unknown %q, want %q", unknown, want)
	}
}

func TestBindPropertiesRefuses(t *testing.T) {
	p, err := ParseProperties([]byte("brokerId=7\nmaxSize=2147483648\nratio=much\nlistenPort=\ntraceOn=yes"))
	if err != nil {
		t.Fatal(err)
	}
	c := config{MaxSize: 5, TraceOn: true, netConfig: netConfig{ListenPort: 1}}
	_, err = BindProperties(p, &c)
	if err == nil || c.BrokerId != 7 || c.MaxSize != 5 || c.TraceOn || c.ListenPort != 1 {
		t.Fatalf("bound %+v, %v", c, err)
	}
	for _, want := range []string{"maxSize=2147483648 is not a number from -2147483648 to 2147483647", "ratio=much is not a number", "listenPort= is not a whole number"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %q", err, want)
		}
	}
}

func TestPropertiesOf(t *testing.T) {
	c := config{FlushDiskType: "ASYNC_FLUSH", BrokerId: 1, Ratio: 75, Hidden: "h", Shared: 4, list: nil, netConfig: netConfig{9876, 5}}
	want := []KeyValue{
		{"brokerId", "1"}, {"flushDiskType", "ASYNC_FLUSH"}, {"listenPort", "9876"}, {"maxSize", "0"}, {"ratio", "75.0"}, {"shared", "4"}, {"tls.server.mode", ""}, {"traceOn", "false"},
	}
	if got := PropertiesOf(&c); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := PropertiesOf(c); !reflect.DeepEqual(got, want) {
		t.Errorf("by value %q", got)
	}
}

func TestFieldName(t *testing.T) {
	for name, want := range map[string]string{"QueueId": "queueId", "ClientID": "clientID", "A": "a", "": "", "x": "x", "Émile": "Émile"} {
		if got := FieldName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A comment behind a value is part of it, and mostly the reason why it means nothing.
func TestCommentBehindAValue(t *testing.T) {
	p, err := ParseProperties([]byte("maxSize=48 # bytes\nratio=1\nratio=2\ntraceOn=true\ntraceOn=true\n"))
	if err != nil {
		t.Fatal(err)
	}
	var c config
	if _, err := BindProperties(p, &c); err == nil || !strings.HasSuffix(err.Error(), "maxSize=48 # bytes is not a whole number (a comment must have a line of its own: here it is part of the value)") {
		t.Error(err)
	}
	if got := p.Twice(); !reflect.DeepEqual(got, []string{"ratio"}) || c.Ratio != 2 {
		t.Errorf("twice %q, ratio %v", got, c.Ratio)
	}
}
