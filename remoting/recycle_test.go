package remoting

import "testing"

// TestReplyGivesBodyBack: whoever lent the body of an answer gets it back once, when its bytes are queued or will not be.
func TestReplyGivesBodyBack(t *testing.T) {
	out := &recorder{stuck: make(chan struct{})}
	c := newMemoryConn(nil, &arrivals{}, out, nil)
	var back []string
	lend := func(text string) *Command {
		return &Command{Body: []byte(text), Recycle: func(b []byte) {
			back = append(back, string(b))
			copy(b, "xxxxx")
		}}
	}
	call := &Call{conn: c}
	call.Reply(lend("first"))
	call.Reply(lend("again")) // not sent: its body stays with who replied
	if len(back) != 1 || back[0] != "first" {
		t.Fatalf("given back: %q", back)
	}
	close(out.stuck)
	<-c.drained()
	if got := out.commands(t); len(got) != 1 || string(got[0].Body) != "first" {
		t.Errorf("answers %v", describe(got))
	}
	c.closeQueue()
	(&Call{conn: c}).Reply(lend("later"))
	if len(back) != 2 || back[1] != "later" {
		t.Errorf("given back after the end: %q", back)
	}
}
