package commitlog

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// tellEvery is how often a write that fails is logged: a full disk refuses thousands a second.
const tellEvery = 10 * time.Second

// failures is when a write that failed was logged last. The append lock guards it.
type failures struct {
	told time.Time
	more int // not logged since
}

// tell logs why messages are refused, but not that the log was closed or that writes have stopped, which is logged when it happens.
func (f *failures) tell(o Options, err error) {
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrWriteStop) {
		return
	}
	now := o.Clock()
	if !f.told.IsZero() && now.Sub(f.told) < tellEvery {
		f.more++
		return
	}
	o.Log.Error("commit log: MESSAGES CAN'T BE WRITTEN AND ARE REFUSED", "folder", o.Dir, "err", err, "notLogged", f.more)
	f.told, f.more = now, 0
}

// writeError names the cause of a failed write.
func writeError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("commitlog: %w", err)
}

// createError names the cause when a file can't be made.
func createError(err error) error {
	if err = writeError(err); errors.Is(err, ErrFull) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCreate, err)
}
