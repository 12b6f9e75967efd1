package target

import (
	"fmt"
	"time"
)

// StartAndKill starts the server again and kills it (SIGKILL) after the given time, wherever its start is by then: a
// server may also die while it recovers.
func (p *process) StartAndKill(after time.Duration) error {
	if p.running() {
		return fmt.Errorf("%s is running", p.name)
	}
	if err := p.launch(); err != nil {
		return err
	}
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
		return p.kill()
	case <-p.exited:
		return fmt.Errorf("%s %s exited during start: %v", p.kind, p.name, p.waitErr)
	}
}
