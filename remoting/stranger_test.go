package remoting

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// The log says who may have come to the wrong port. (The first bytes are those of RFC 9112, RFC 9113 and of both versions
// of the PROXY protocol.)
func TestStranger(t *testing.T) {
	for first, want := range map[string]string{
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":       "perhaps a gRPC client of RocketMQ 5",
		"GET / HTTP/1.1\r\n":                     ": HTTP, which",
		"POST /x HTTP/1.1\r\n":                   ": HTTP, which",
		"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n":   "PROXY protocol",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c": "PROXY protocol",
		"hello":                                  `error="length 1751477356"`,
	} {
		var log bytes.Buffer
		in, out := &arrivals{pieces: [][]byte{[]byte(first)}}, &recorder{}
		e := newEndpoint(DefaultServerConfig().limits(), echoMux(nil), Events{}, slog.New(slog.NewTextHandler(&log, nil)))
		feed(newConn(e, in, out), in)
		if !strings.Contains(log.String(), want) || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%q: %s", first, log.String())
		}
	}
}
