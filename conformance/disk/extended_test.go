//go:build conformance

package disk

import (
	"archive/tar"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"rocketd/conformance/target"
)

// recordTo makes testdata of the store's tests again: `-run SameUnits -args -record $PWD/store/testdata/extended.tar.gz`.
var recordTo = flag.String("record", "", "a file for the official broker's store of TestSameRequestsMakeTheSameUnits")

// extended are small files with consumequeue_ext, of which each holds 25 units.
var extended = withConf(small, "enableConsumeQueueExt", "true", "mappedFileSizeConsumeQueueExt", "512")

func withConf(conf map[string]string, pairs ...string) map[string]string {
	all := maps.Clone(conf)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// Both brokers write units into consumequeue_ext and go on behind those of the other; in one era the option is off.
func TestTurnsWithConsumeQueueExt(t *testing.T) {
	other := target.Rocketd
	if k := selected(t); k == target.Official {
		other = k
	}
	eras := []*era{
		{kind: target.Official},
		{kind: other},
		{kind: target.Official, kill: true},
		{kind: other, kill: true},
		{kind: other, unextended: true},
		{kind: target.Official, kill: true},
		{kind: other},
		{kind: target.Official},
	}
	takeTurns(t, eras, extended, 8)
}

// The same requests make the same files in consumequeue_ext too.
func TestSameRequestsMakeTheSameUnits(t *testing.T) { sameFiles(t, extended, 6) }

// maxExtAddress is the largest tagsCode that is an address in consumequeue_ext.
const maxExtAddress = math.MinInt32 - 1

// resolve returns what the unit says to which the tagsCode of an entry leads.
func resolve(t *testing.T, dir string, p place, tagsCode, fileSize int64) (code, storeTimestamp int64) {
	t.Helper()
	offset := tagsCode - math.MinInt64
	b := unitFile(t, filepath.Join(dir, "consumequeue_ext"), p, offset-offset%fileSize, fileSize)
	if b == nil {
		t.Errorf("%s: the file of the unit at %d is missing", p, offset)
		return 0, 0
	}
	u := b[offset%fileSize:]
	if size := binary.BigEndian.Uint16(u); size != 20 || binary.BigEndian.Uint16(u[18:]) != 0 {
		t.Errorf("%s: the unit at %d is % x", p, offset, u[:20])
	}
	return int64(binary.BigEndian.Uint64(u[2:])), int64(binary.BigEndian.Uint64(u[10:]))
}

func unitFile(t *testing.T, dir string, p place, start, fileSize int64) []byte {
	t.Helper()
	name := filepath.Join(dir, p.topic, strconv.Itoa(int(p.queueId)), fileName(start))
	b, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err == nil && int64(len(b)) != fileSize {
		t.Fatalf("%s has %d bytes, want %d", name, len(b), fileSize)
	}
	return b
}

// maskUnits takes the times out of a file of units; those of delayed messages have their delay.
func maskUnits(file []byte, schedule bool) {
	for b := file; len(b) >= 20; {
		size := int16(binary.BigEndian.Uint16(b))
		if size < 20 || int(size) > len(b) {
			return
		}
		if schedule {
			binary.BigEndian.PutUint64(b[2:], binary.BigEndian.Uint64(b[2:])-binary.BigEndian.Uint64(b[10:]))
		}
		clear(b[10:18])
		b = b[size:]
	}
}

// pack puts the messages of a store into a file.
func pack(t *testing.T, name, dir string) {
	t.Helper()
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(out)
	w := tar.NewWriter(z)
	for _, part := range []string{"checkpoint", "commitlog", "consumequeue", "consumequeue_ext", "index"} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(dir, path)
			h := &tar.Header{Name: "store/" + filepath.ToSlash(rel), Mode: 0o644, Size: int64(len(b)), ModTime: info.ModTime()}
			if err := w.WriteHeader(h); err != nil {
				return err
			}
			_, err = w.Write(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
}
