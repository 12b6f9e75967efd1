package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"rocketd/store/inspect"
)

const (
	progressAfter = 2 * time.Second // shorter work shows nothing
	progressEvery = 200 * time.Millisecond
	barWidth      = 30
)

// progressLine is the line on a terminal that tells how far long work is.
type progressLine struct {
	w       io.Writer // nil: not a terminal
	clock   func() time.Time
	started time.Time // the work
	stage   string
	since   time.Time // the stage
	next    time.Time
	shown   bool
}

func newProgressLine(w io.Writer) *progressLine {
	l := &progressLine{clock: time.Now}
	if f, ok := w.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
			l.w = w
		}
	}
	l.started = l.clock()
	l.next = l.started.Add(progressAfter)
	return l
}

// show draws the line, now and then.
func (l *progressLine) show(p inspect.Progress) {
	if l.w == nil {
		return
	}
	now := l.clock()
	if p.Stage != l.stage {
		l.stage, l.since = p.Stage, now
	}
	if now.Before(l.next) || p.Total <= 0 {
		return
	}
	l.next, l.shown = now.Add(progressEvery), true
	share := min(1, max(0, float64(p.Done)/float64(p.Total)))
	filled := int(share * barWidth)
	left := ""
	if took := now.Sub(l.since); share > 0.02 && took > progressAfter {
		left = fmt.Sprintf(", %v left", time.Duration(float64(took)*(1-share)/share).Round(time.Second))
	}
	fmt.Fprintf(l.w, "\r\x1b[K%s [%s%s] %.0f %%%s", p.Stage, strings.Repeat("#", filled), strings.Repeat(".", barWidth-filled), 100*share, left)
}

// clear takes the line away, before something else is printed.
func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(l.w, "\r\x1b[K")
		l.shown = false
	}
}
