package commitlog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"rocketd/store/vfs"
)

// TestRefusalsAreLogged: the log tells why messages are refused, but not for each of them.
func TestRefusalsAreLogged(t *testing.T) {
	for _, c := range []struct {
		kind vfs.Kind
		err  error
		want error
	}{
		{vfs.OpCreate, syscall.EFBIG, ErrCreate},
		{vfs.OpCreate, syscall.ENOSPC, ErrFull},
		{vfs.OpWrite, syscall.EIO, nil},
	} {
		t.Run(fmt.Sprint(c.kind, c.err), func(t *testing.T) {
			var text bytes.Buffer
			fault := vfs.NewFault(vfs.NewMem(nil), func(o vfs.Op) error {
				if o.Kind == c.kind && o.Name != "" {
					return c.err
				}
				return nil
			})
			l := started(t, options(func(o *Options) {
				o.FS = fault
				o.Log = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelError}))
			}))
			for range 100 {
				p := put(msg(0, "x", 0))
				if l.Append([]*Put{p}); !errors.Is(p.Err, c.err) || c.want != nil && !errors.Is(p.Err, c.want) {
					t.Fatal(p.Err)
				}
			}
			if n := strings.Count(text.String(), "MESSAGES CAN'T BE WRITTEN"); n != 1 || !strings.Contains(text.String(), c.err.Error()) {
				t.Errorf("%d lines: %s", n, text.String())
			}
		})
	}
}
