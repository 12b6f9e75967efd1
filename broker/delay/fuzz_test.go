package delay

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzFile starts with any bytes as delayOffset.json. It demands: no panic; every level's place lies in its queue; what is
// written at the end is read as the same.
func FuzzFile(f *testing.F) {
	f.Add([]byte("{\n\t\"offsetTable\":{3:2\n\t}\n}")) // of an official broker
	f.Add([]byte(`{"offsetTable":{1:99999999,2:-5,-3:1,25:9}}`))
	f.Add([]byte(`{"offsetTable":`))
	f.Add([]byte("{}old}"))
	f.Add([]byte("null"))
	f.Add(make([]byte, 50))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "delayOffset.json")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		s := newStore()
		for range 3 {
			s.wait(1, time.Now(), "x", properties("T", 0))
		}
		d := open(t, s, path, time.Now)
		places := d.Offsets()
		for level, at := range places {
			if want := int64(3); level == 1 && (at < 0 || at > want) || level != 1 && at != 0 {
				t.Errorf("level %d: place %d", level, at)
			}
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, s, path, time.Now)
		defer d.Close()
		if got := d.Offsets(); !maps.Equal(got, places) {
			t.Errorf("%q: places %v, after a restart %v", data, places, got)
		}
	})
}
