package target

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// The probe speaks just enough of the protocol to see that a server serves. It shares no code with the
// product, so that a fault in the product's own codec cannot hide here.

const (
	codeRouteByTopic = 105
	probeDeadline    = 3 * time.Second
	// Header version 4.9.8: the name server then answers in standard JSON.
	probeVersion = 409
)

// answersFrames succeeds when the server at addr answers a request, whatever it answers.
func answersFrames(addr string, secure *tls.Config) error {
	_, _, err := askRoute(addr, secure, "TBW102")
	return err
}

// routed succeeds when the name server's route of the broker's own topic (named after it) holds its address. Around an
// IPv6 address the official broker puts no brackets, and rocketd does: both can be read by Java, only one by Go.
func routed(namesrv string, secure *tls.Config, brokerName, host, port string) error {
	code, body, err := askRoute(namesrv, secure, brokerName)
	if err != nil {
		return fmt.Errorf("name server %s: %w", namesrv, err)
	}
	if code != 0 || !strings.Contains(body, `"`+net.JoinHostPort(host, port)+`"`) && !strings.Contains(body, `"`+host+":"+port+`"`) {
		return fmt.Errorf("name server %s does not route %s to %s, port %s, yet (code %d)", namesrv, brokerName, host, port, code)
	}
	return nil
}

// askRoute sends one GET_ROUTEINFO_BY_TOPIC and returns the answer's code and body.
func askRoute(addr string, secure *tls.Config, topic string) (code int, body string, err error) {
	c, err := net.DialTimeout("tcp", addr, probeDeadline)
	if err != nil {
		return 0, "", err
	}
	if secure != nil {
		c = tls.Client(c, secure)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(probeDeadline)); err != nil {
		return 0, "", err
	}
	header, err := json.Marshal(map[string]any{
		"code": codeRouteByTopic, "language": "JAVA", "version": probeVersion, "opaque": 1, "flag": 0,
		"serializeTypeCurrentRPC": "JSON", "extFields": map[string]string{"topic": topic},
	})
	if err != nil {
		return 0, "", err
	}
	// length of the rest | 0 (JSON) and header length | header
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := c.Write(append(frame, header...)); err != nil {
		return 0, "", err
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return 0, "", err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > 16<<20 {
		return 0, "", fmt.Errorf("%s answers a frame of %d bytes", addr, n)
	}
	rest := make([]byte, n)
	if _, err := io.ReadFull(c, rest); err != nil {
		return 0, "", err
	}
	h := binary.BigEndian.Uint32(rest) & 0xFFFFFF
	if uint64(h)+4 > uint64(n) {
		return 0, "", fmt.Errorf("%s answers a header of %d bytes in a frame of %d", addr, h, n)
	}
	var answer struct{ Code int }
	if err := json.Unmarshal(rest[4:4+h], &answer); err != nil {
		return 0, "", fmt.Errorf("%s answers no JSON header: %w", addr, err)
	}
	return answer.Code, string(rest[4+h:]), nil
}
