package store

import (
	"errors"

	"rocketd/protocol/message"
	"rocketd/store/commitlog"
)

// IsGone tells whether Message or Record has failed because no message is there any more, or what is there is none: no later try
// can end otherwise. Other errors may pass.
func IsGone(err error) bool {
	for _, e := range []error{commitlog.ErrNotFound, message.ErrBlank, message.ErrMagic, message.ErrSize, message.ErrShort} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
