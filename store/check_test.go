package store

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"rocketd/store/vfs"
)

// Settings without effect are accepted and named in the log, once; the defaults are not.
func TestSettingsWithoutEffect(t *testing.T) {
	open := func(change func(*Config)) string {
		var text bytes.Buffer
		cfg := smallConfig("/store")
		change(&cfg)
		s, err := Open(cfg, Options{FS: vfs.NewMem(nil), Log: slog.New(slog.NewTextHandler(&text, nil))})
		if err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		return text.String()
	}
	if got := open(func(*Config) {}); strings.Contains(got, "setting without effect") {
		t.Errorf("the defaults: %s", got)
	}
	got := open(func(c *Config) {
		c.TransientStorePoolEnable, c.WarmMapedFileEnable, c.FastFailIfNoBufferInStorePool, c.FlushCommitLogTimed = true, true, true, false
		c.CommitIntervalCommitLog, c.CommitCommitLogLeastPages, c.CommitCommitLogThoroughInterval, c.TransientStorePoolSize = 1, 1, 1, 1
	})
	for _, key := range []string{"transientStorePoolEnable", "warmMapedFileEnable", "fastFailIfNoBufferInStorePool", "flushCommitLogTimed"} {
		if n := strings.Count(got, "key="+key+" "); n != 1 {
			t.Errorf("%s is named %d times in\n%s", key, n, got)
		}
	}
}
