package remoting

import (
	"testing"

	"rocketd/protocol"
)

// TestAllocations is the budget of one request on its way from the input to the write queue: the call
// with its header, the header's text, the body, and the answer's header, which is the handler's. JSON
// adds the text of a value that has escapes.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("pools leak under the race detector")
	}
	const depth = 64
	for _, test := range []struct {
		name   string
		form   protocol.SerializeType
		code   protocol.RequestCode
		body   int
		budget float64
	}{
		{"send, JSON", protocol.JSON, protocol.SendMessageV2, 128, 5.3},
		{"send, ROCKETMQ", protocol.Binary, protocol.SendMessageV2, 128, 4.3},
		{"send without body, ROCKETMQ", protocol.Binary, protocol.SendMessageV2, 0, 3.3},
		{"inline, JSON", protocol.JSON, protocol.HeartBeat, 0, 3.3},
		{"inline, ROCKETMQ", protocol.Binary, protocol.HeartBeat, 0, 2.3},
	} {
		c, in, _ := memoryConn(sendMux())
		var b []byte
		for i := range int32(depth) {
			req := sendRequest(test.form, i, test.body)
			req.Code = int32(test.code)
			b = protocol.AppendFrame(b, req)
		}
		got := testing.AllocsPerRun(100, func() {
			in.WriteBinary(b)
			in.Flush()
			c.serve()
		}) / depth
		t.Logf("%s: %.2f allocations", test.name, got)
		if got > test.budget {
			t.Errorf("%s: %.2f allocations, budget %.2f", test.name, got, test.budget)
		}
	}
}
