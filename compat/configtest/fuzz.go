// Package configtest is set-up of tests of the tables that are kept in files of JSON.
package configtest

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"
)

// Table is what a fuzz test needs of a table.
type Table struct {
	Decode  func(data []byte) error
	Encode  func() ([]byte, error)
	Content func() any   // what is compared
	Close   func() error // nil: there is nothing to close
}

// FuzzFile lets a table read any bytes as its file, beginning with testdata/official.json, parts of it and seed. It demands: no
// panic; what is read is written in a form that is read as the same.
func FuzzFile(f *testing.F, seed string, open func(t *testing.T, file string) Table) {
	official, err := os.ReadFile("testdata/official.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(official)
	f.Add(official[:len(official)/2])
	f.Add(append([]byte("{}"), official[2:]...))
	f.Add([]byte("{}"))
	f.Add([]byte("null"))
	f.Add(make([]byte, 100))
	f.Add([]byte(seed))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		table := open(t, filepath.Join(dir, "a.json"))
		defer closeTable(t, table)
		if table.Decode(data) != nil {
			return
		}
		text, err := table.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again := open(t, filepath.Join(dir, "b.json"))
		defer closeTable(t, again)
		if err := again.Decode(text); err != nil {
			t.Fatalf("%s is written and not read: %v", text, err)
		}
		if got, want := again.Content(), table.Content(); utf8.Valid(data) && !reflect.DeepEqual(got, want) { // other bytes are written as U+FFFD
			t.Errorf("%q is read as %+v, written and read as %+v", data, want, got)
		}
	})
}

func closeTable(t *testing.T, table Table) {
	if table.Close == nil {
		return
	}
	if err := table.Close(); err != nil {
		t.Error(err)
	}
}
