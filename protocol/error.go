package protocol

import "fmt"

// Error is an answer that is not a success: the response code and the remark for the peer. A handler
// returns it; the answer then carries no header, like an exception in the official server.
type Error struct {
	Code   ResponseCode
	Remark string
}

// Errorf makes an Error with a formatted remark.
func Errorf(code ResponseCode, format string, args ...any) *Error {
	if len(args) == 0 {
		return &Error{code, format}
	}
	return &Error{code, fmt.Sprintf(format, args...)}
}

// Error implements error.
func (e *Error) Error() string { return e.Code.String() + ": " + e.Remark }
