//go:build conformance

package badinput

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
	"rocketd/namesrv"
	"rocketd/protocol"
)

// namesFile is what the official server answered to names that lead elsewhere.
var namesFile = filepath.Join("testdata", "official-names.tsv")

// hostile are names that would lead out of the folder that a server used them in, or can be no file's.
var hostile = map[string]string{
	"up": "../BadInput", "up and up": "../../../BadInputUp", "dots": "..", "absolute": "/BadInputRoot", "below": "BadInput/below",
	"backslash": `..\BadInput`, "NUL": "BadInput\x00/../x", "encoded": "%2fBadInput", "home": "~BadInput", "line": "BadInput\nx=/y",
}

// nameDifferences are where rocketd's answer to such a name is not the official one.
var nameDifferences = []difference{
	{"broker", 17, "attributes .*", "1\t\"(delete|add/alter) attribute format is wrong.*kept", "0\t.*", "attributes of topics are of 5.x: what a 5.3.3 broker " +
		"refuses is refused"},
	{"broker", 321, "topic .*", "1\t\"0@.* is not exist!\"\t-\tkept", "0\t\"Index 0 of .*", "questions for a queue's offsets do not make the queue"},
	{"broker", 325, ".*", "(1|17)\t.*kept", "1\t\"The specified topic is blank.\".*", "fields by their long names are read as in 310, where the official server " +
		"reads them too"},
}

// nameCases gives every text of every header such a name.
func nameCases() (all []badCase) {
	for _, of := range []struct {
		server string
		plans  map[protocol.RequestCode]*protocol.Plan
	}{{"namesrv", namesrv.Headers()}, {"broker", brokers()}} {
		for _, code := range slices.Sorted(maps.Keys(of.plans)) {
			m := maker{server: of.server, code: int(code), fields: of.plans[code].Fields()}
			for _, f := range m.fields {
				if f.Number {
					continue
				}
				key := m.key(f)
				for _, what := range slices.Sorted(maps.Keys(hostile)) {
					m.add(key+" "+what, func(frame *wire.Frame) { frame.Set(key, hostile[what]) })
				}
			}
			all = append(all, m.cases...)
		}
	}
	return all
}

// TestHostileNames: a name that leads elsewhere is answered as by the official server, and what lies beside the stores stays as it is.
func TestHostileNames(t *testing.T) {
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{Conf: settings}}})
	if *update && c.Kind != target.Official {
		t.Fatal("-update is for CONFORMANCE_TARGET=official")
	}
	prepare(t, c)
	before := beside(t, c)
	official := &recording{answers: map[string]answer{}}
	if !*update {
		var err error
		if official, err = readRecording(namesFile); err != nil {
			t.Fatal(err)
		}
	}
	askAll(t, c, official, nameCases(), nameDifferences)
	if c.Kind == target.Rocketd {
		after := beside(t, c)
		for path := range after {
			if _, ok := before[path]; !ok {
				t.Errorf("%s was made", path)
			}
		}
		for path := range before {
			if _, ok := after[path]; !ok {
				t.Errorf("%s is gone", path)
			}
		}
	}
	if *update && !t.Failed() {
		if err := official.write(namesFile); err != nil {
			t.Fatal(err)
		}
	}
}

// beside are the files of a target but for those in stores, and for the name server's KV file.
func beside(t *testing.T, c *target.Target) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(c.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path == c.Brokers[0].StoreDir {
			return fs.SkipDir
		}
		if !strings.HasPrefix(filepath.Base(path), "kvConfig.json") {
			all[fmt.Sprint(path, d.IsDir())] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
