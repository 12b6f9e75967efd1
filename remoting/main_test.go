package remoting

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain demands that every server, client and lane of these tests has ended all its goroutines.
// netpoll's pollers live as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/cloudwego/netpoll.(*defaultPoll).Wait"))
}
