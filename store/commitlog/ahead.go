package commitlog

import "sync/atomic"

// aheadWindow is how many bytes of cold data are read ahead at a time: what the system does by itself where nobody has
// told it to read more.
const aheadWindow = 128 << 10

// ahead knows which windows of the log were read ahead last, so that each is asked for once. One that is forgotten is
// asked for again, which costs a system call; one that memory has lost meanwhile is read by who needs it.
type ahead struct {
	windows [256]atomic.Int64 // by where they begin, + 1
}

// first notes a window, by its offset, and tells whether it was not known.
func (a *ahead) first(at int64) bool {
	slot := &a.windows[at/aheadWindow%int64(len(a.windows))]
	return slot.Load() != at+1 && slot.Swap(at+1) != at+1
}

// ReadAhead is called by who reads the log on from an offset, for size bytes and then, probably, further. Of cold bytes
// those and the window behind them are brought into memory, in pieces that keep no processor for long.
func (l *Log) ReadAhead(offset int64, size int) {
	if !l.Cold(offset) {
		return
	}
	v, ok := l.files.View(offset)
	if !ok {
		return
	}
	defer v.Release()
	in := offset - v.Start()
	for at := offset - in%aheadWindow; at < min(offset+int64(size)+aheadWindow, v.End()); at += aheadWindow {
		if l.ahead.first(at) {
			v.ReadAhead(at, aheadWindow)
		}
	}
}
