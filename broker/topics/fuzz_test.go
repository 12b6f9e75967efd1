package topics

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzFile reads any bytes as topics.json. It demands: no panic; what is read is written in a form that is read as the same.
func FuzzFile(f *testing.F) {
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
	f.Add([]byte(`{"topicConfigTable":{"a":null,"b":{},"c/d":{},"e":{"topicName":"f","perm":-1,"readQueueNums":-2147483648}},"dataVersion":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		table := open(t, filepath.Join(dir, "a.json"), nil)
		if table.decode(data) != nil {
			return
		}
		text, err := table.encode()
		if err != nil {
			t.Fatal(err)
		}
		again := open(t, filepath.Join(dir, "b.json"), nil)
		if err := again.decode(text); err != nil {
			t.Fatalf("%s is written and not read: %v", text, err)
		}
		if got, want := again.Wrapper(), table.Wrapper(); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %+v, written and read as %+v", data, want, got)
		}
	})
}
