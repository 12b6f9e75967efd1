package remoting

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain demands that every server, client and lane of these tests has ended all its goroutines.
// netpoll's pollers live as long as the process.
func TestMain(m *testing.M) {
	if text := os.Getenv(loadVariable); text != "" {
		var l load
		_, err := fmt.Sscan(text, &l.addr, &l.conns, &l.depth, &l.rounds)
		if err == nil {
			err = l.run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "load generator:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/cloudwego/netpoll.(*defaultPoll).Wait"))
}
