package commitlog

import (
	"errors"
	"strings"

	"rocketd/protocol/message"
	"rocketd/store/segment"
)

// errTorn is the end of a log whose last record was being written when the process died.
var errTorn = errors.New("a record of which only a part was written")

// The kernel ends a write at a page when the process is killed, and no checksum covers topic and properties: a record that was cut
// off there has good sizes and a good body, and would be shown with a part of its properties. It was not acknowledged. What a
// file holds in the place of the rest are zeros, and nothing stands behind it; properties that a broker has written do not
// end with a zero byte, and no topic has one.
func torn(r message.Record) bool {
	p := r.Properties()
	return strings.HasSuffix(p, "\x00") || strings.IndexByte(r.Topic(), 0) >= 0
}

// nothingAt tells whether no record was written at an offset.
func nothingAt(f *segment.File, offset int64) (bool, error) {
	var b [message.BlankRecordSize]byte
	if offset+int64(len(b)) > f.End() {
		return false, nil
	}
	err := f.ReadAt(b[:], offset)
	return b == [message.BlankRecordSize]byte{}, err
}
