//go:build conformance

package differential

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/wire"
)

func word(v uint32, rest string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, v), rest...)
}

// Bytes that are no frame close the connection without an answer; every other connection goes on.
func TestBrokenFramesCloseTheConnection(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "BrokenFrames").Topic
	held := dial(t, broker())
	poll, err := held.Send(longPoll(topic, 1, 14*time.Second))
	if err != nil {
		t.Fatal(err)
	}

	good := wire.Request(38, "consumerGroup", "none").Encode()
	cases := []struct {
		name  string
		bytes []byte
	}{
		{"length 0", word(0, "")},
		{"length 0, then more", append(word(0, ""), good...)},
		{"length without room for the second word", word(2, "ab")},
		{"length negative", word(0xFFFFFFFF, "\x00\x00\x00\x10abcdefgh")},
		{"length beyond the limit", word(16<<20-3, "\x00\x00\x00\x10abcdefgh")},
		{"header longer than the frame", append(word(12, ""), word(9, "12345678")...)},
		{"header of 16 MiB in a small frame", append(word(12, ""), word(0xFFFFFF, "12345678")...)},
		{"unknown form 2", wire.Assemble(2, []byte(`{"code":38}`), nil)},
		{"unknown form 255", wire.Assemble(255, []byte(`{"code":38}`), nil)},
		{"header not JSON", wire.Assemble(wire.JSON, []byte("GET / HTTP/1.1\r\n\r\n"), nil)},
		{"header cut short", wire.Assemble(wire.JSON, []byte(`{"code":38,"extFields":{"a"`), nil)},
		{"code not a number", wire.Assemble(wire.JSON, []byte(`{"code":"many"}`), nil)},
		{"binary header cut short", wire.Assemble(wire.Binary, []byte("\x00\x26\x00\x01"), nil)},
		{"binary ext fields beyond the header", wire.Assemble(wire.Binary,
			[]byte("\x00\x26\x00\x01\x99\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x20\x00\x01a"), nil)},
	}
	for _, where := range []struct{ name, addr string }{{"broker", broker()}, {"fast port", fastPort()}, {"name server", namesrv()}} {
		for _, c := range cases {
			t.Run(where.name+"/"+c.name, func(t *testing.T) {
				conn := dial(t, where.addr)
				if err := conn.Write(c.bytes); err != nil {
					t.Fatal(err)
				}
				if !conn.ClosedWithin(patience) {
					t.Error("the connection stays open")
				}
			})
		}
	}

	// The held pull was neither dropped nor answered early: a message wakes it.
	if f, err := poll.Wait(0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the held pull: %+v, %v", f, err)
	}
	expect(t, broker(), sendV2(topic), sent)
	f, err := poll.Wait(patience)
	if err != nil {
		t.Fatalf("the held pull: %v", err)
	}
	if wrong := found.matches(f); wrong != "" {
		t.Error("the held pull:", wrong)
	}
}

// A frame may arrive in pieces, or many in one piece.
func TestFramesInAnyCut(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "AnyCut").Topic
	eitherForm(t, func(t *testing.T, form byte) {
		request := wire.Request(30, "topic", topic, "queueId", "0")
		request.Form, request.Opaque = form, 77
		one := request.Encode()
		for _, c := range []struct {
			name   string
			pieces [][]byte
			want   int
		}{
			{"byte by byte", bytes.SplitAfter(one, nil), 1},
			{"a hundred in one piece", [][]byte{bytes.Repeat(one, 100)}, 100},
			{"one and a half, then the rest", [][]byte{append(bytes.Clone(one), one[:20]...), one[20:]}, 2},
		} {
			conn, err := newRawConn(broker())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range c.pieces {
				if _, err := conn.Write(p); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c.want {
				f, err := wire.Read(conn)
				if err != nil {
					t.Fatalf("%s: answer %d: %v", c.name, i, err)
				}
				if f.Opaque != 77 || f.Form != form || f.Ext["offset"] != "1" {
					t.Errorf("%s: answer %d: %+v", c.name, i, f)
				}
			}
			_ = conn.Close()
		}
	})
}

// JSON headers are read with the same mildness: values that are not strings, members nobody knows, spaces, any order.
func TestMildHeaders(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "MildHeaders").Topic
	for _, c := range []struct{ name, header string }{
		{"numbers as values", `{"code":30,"opaque":5,"extFields":{"topic":"` + topic + `","queueId":0}}`},
		{"unknown members", `{"x":{"y":[1,{"z":null}]},"extFields":{"queueId":"0","topic":"` + topic + `","more":true},"opaque":5,"code":30}`},
		{"spaces", " {\n\"code\" : 30 , \"opaque\":5, \"extFields\" : { \"topic\":\"" + topic + "\", \"queueId\" : \"0\" } } "},
		{"escapes", `{"code":30,"opaque":5,"extFields":{"t\u006fpic":"\u004d` + topic[1:] + `","queueId":"0"}}`},
		{"null remark and version", `{"code":30,"opaque":5,"remark":null,"version":0,"extFields":{"topic":"` + topic + `","queueId":"0"}}`},
	} {
		conn, err := newRawConn(broker())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(wire.Assemble(wire.JSON, []byte(c.header), nil)); err != nil {
			t.Fatal(err)
		}
		f, err := wire.Read(conn)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if wrong := (answer{ext: "offset"}).matches(f); wrong != "" || f.Opaque != 5 || f.Ext["offset"] != "1" {
			t.Errorf("%s: %s: %+v", c.name, wrong, f)
		}
		_ = conn.Close()
	}
}

// Codes that a broker of 4.9.8 has no handler for (4.9.7 still answers 54), and such of a name server.
var (
	unknownToBroker = []int{0, -1, 13, 22, 23, 27, 209, 210, 211, 212, 213, 214, 301, 302, 330, 350, 9999, 32767, // unused and unknown
		100, 101, 103, 105, 216, 322, // the name server's
		39, 40, 220, 221, 326} // the client's
	unknownToNamesrv = []int{0, -1, 10, 11, 13, 17, 25, 54, 200, 209, 222, 301, 307, 317, 323, 351, 361, 9999}
)

// The code 3 answers of the broker, the silence of the name server.
func TestUnknownCodes(t *testing.T) {
	t.Parallel()
	eitherForm(t, func(t *testing.T, form byte) {
		for _, code := range unknownToBroker {
			request := wire.Request(code, "topic", "T")
			request.Form = form
			for _, port := range []string{broker(), fastPort()} {
				f := expect(t, port, request, answer{code: 3, remark: " request type " + itoa(code) + " not supported"})
				if f != nil && f.Form != form {
					t.Errorf("code %d: asked in form %d, answered in form %d", code, form, f.Form)
				}
			}
		}
		var waiting []*wire.Pending
		var conns []*wire.Conn
		for _, code := range unknownToNamesrv {
			request := wire.Request(code, "topic", "T")
			request.Form = form
			c := dial(t, namesrv())
			p, err := c.Send(request)
			if err != nil {
				t.Fatal(err)
			}
			waiting, conns = append(waiting, p), append(conns, c)
		}
		for i, p := range waiting { // they are silent at the same time
			listen := time.Duration(0)
			if i == 0 {
				listen = silence
			}
			if f, err := p.Wait(listen); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("name server, code %d: %+v, %v; want silence", unknownToNamesrv[i], f, err)
			}
			// silence is not deafness
			if f, err := conns[i].Call(wire.Request(106), patience); err != nil || f.Code != 0 {
				t.Errorf("name server after code %d: %+v, %v", unknownToNamesrv[i], f, err)
			}
		}
	})
}

// A oneway request is never answered, whether it succeeds, fails or is unknown.
func TestOnewayIsNotAnswered(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "Oneway").Topic
	c := dial(t, broker())
	var waiting []*wire.Pending
	for _, f := range []*wire.Frame{sendV2(topic), sendV2(topic).Without("e"), sendV2("no/topic"), pull(topic), wire.Request(9999), wire.Request(34)} {
		f.Flag = wire.FlagOneway
		p, err := c.Send(f)
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, p)
	}
	for i, p := range waiting { // they are silent at the same time
		listen := time.Duration(0)
		if i == 0 {
			listen = silence
		}
		if f, err := p.Wait(listen); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("oneway request %d: %+v, %v", i, f, err)
		}
	}
	// The good one was done all the same.
	if f, err := c.Call(longPoll(topic, 1, 10*time.Second), patience); err != nil || found.matches(f) != "" {
		t.Errorf("%+v, %v", f, err)
	}
}

// The fast port does all but pull.
func TestFastPort(t *testing.T) {
	t.Parallel()
	topic := newTopicWithMessage(t, "FastPort").Topic
	expect(t, fastPort(), pull(topic), answer{code: 3, remark: " request type 11 not supported"})
	expect(t, fastPort(), sendV2(topic), sent)
	expect(t, fastPort(), sendV1(topic), sent)
	expect(t, fastPort(), wire.Request(30, "topic", topic, "queueId", "0"), answer{ext: "offset"})
	expect(t, fastPort(), wire.Request(34).WithBody([]byte("{}")), answer{})
	expect(t, fastPort(), wire.Request(9999), answer{code: 3, remark: " request type 9999 not supported"})
}

// Both have TLS in its permissive mode; a hello that makes no sense ends the connection. (conformance/tls has those that do.)
func TestBrokenHandshakeIsClosed(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{broker(), fastPort(), namesrv()} {
		c := dial(t, addr)
		hello := "\x16\x03\x01\x00\xc4\x01\x00\x00\xc0\x03\x03" + strings.Repeat("r", 190)
		if err := c.Write([]byte(hello)); err != nil {
			t.Fatal(err)
		}
		if !c.ClosedWithin(patience) {
			t.Errorf("%s keeps the connection", addr)
		}
	}
}
