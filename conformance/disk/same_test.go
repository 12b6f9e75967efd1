//go:build conformance

package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rocketd/conformance/target"
)

// The same requests make the same files, to the byte, but for times, ports and the order of properties (in Java that
// of a hash table).
func TestSameRequestsMakeTheSameFiles(t *testing.T) { sameFiles(t, small, 6) }

func sameFiles(t *testing.T, conf map[string]string, scale int) {
	var dirs []string
	for _, kind := range []target.Kind{target.Official, selected(t)} {
		r := newTurns(t, []*era{{kind: kind}}, conf, scale)
		e := &era{kind: kind}
		s := r.begin(e)
		r.sameRequests(s)
		r.end(s, e, nil)
		dirs = append(dirs, r.broker.StoreDir)
		if kind == target.Official && *recordTo != "" && r.extended {
			pack(t, *recordTo, r.broker.StoreDir)
		}
	}
	want, got := readMasked(t, dirs[0]), readMasked(t, dirs[1])
	if a, b := slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)); !slices.Equal(a, b) {
		t.Errorf("files\n%q\nwant\n%q", b, a)
	}
	size := 0
	for name, w := range want {
		if g, ok := got[name]; ok && !bytes.Equal(g, w) {
			at := 0
			for at < min(len(g), len(w)) && g[at] == w[at] {
				at++
			}
			t.Errorf("%s (%d bytes, want %d) differs at %d:\n%q\nwant\n%q", name, len(g), len(w), at, near(g, at), near(w, at))
		}
		size += len(w)
	}
	t.Logf("%d files of %d bytes compared", len(want), size)
}

func near(b []byte, at int) []byte { return b[max(0, at-40):min(len(b), at+120)] }

// sameRequests sends everything that has a fixed order.
func (r *turns) sameRequests(s *server) {
	w := &sender{server: s, l: r.l, oneByOne: true}
	r.topic(s, "Disk", 4)
	r.topic(s, strings.Repeat("t", 127), 1)
	r.topic(s, "Doomed", 2)
	s.Done(createGroup(r.t, "DiskGroup"))
	s.Done(heartbeat(r.t, "DiskGroup"))
	r.l.topics["%RETRY%DiskGroup"] = 1
	w.everyKind("Disk", 4, r.scale)
	w.everyKind(strings.Repeat("t", 127), 1, 1)
	w.message(place{"Doomed", 1}, "doomed", "KEYS", "doomed")
	w.message(place{"Disk", 1}, "an empty value", "empty", "", "WAIT", "false", "KEYS", " a  b ")
	delete(w.wait[len(w.wait)-1].messages[0].properties, "empty")
	w.send()
	r.l.topics["Auto"] = 4
	w.message(place{"Auto", 2}, "a topic of its own", "TAGS", "Auto")
	w.delayed(place{"Disk", 1}, "18", "18")
	w.send()
	for range 2 {
		w.delayed(place{"Disk", 0}, "1")
		w.send()
		r.l.settle(s)
		r.settleAll(s, "Disk")
	}
	w.give("DiskGroup", 1, -1)
	r.settleAll(s, "%RETRY%DiskGroup")
	r.commit(s, "DiskGroup", "Disk")
	r.deleteTopic(s, "Doomed")
	w.everyKind("Disk", 4, 4*r.scale) // the index has a second file
	w.send()
	r.l.settle(s)
}

// settleAll waits until every delayed message of a topic that is not for hours has been delivered.
func (r *turns) settleAll(s *server, topic string) {
	until(r.t, "delayed messages are delivered", func() bool {
		r.l.readNew(s, r.l.places())
		for _, m := range r.l.open {
			if m.origin != nil && m.topic == topic && m.due < millis()+delays["4"] {
				return false
			}
		}
		return true
	})
}

// readMasked reads the files of a store that was closed, without what cannot be the same.
func readMasked(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	records := map[int64]record{}
	logDir := filepath.Join(dir, "commitlog")
	list, _ := readLog(t, logDir, number(t, small["mappedFileSizeCommitLog"]))
	for _, r := range list {
		records[r.phyOffset] = r
	}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		all[name] = b
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(all, "rocketd-queues") // our own hint, which the official broker ignores
	var indexEnds []int64
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := all[name]
		switch room, _, _ := strings.Cut(name, "/"); room {
		case "commitlog":
			maskLog(t, b, number(t, filepath.Base(name)), list)
		case "consumequeue":
			if strings.Contains(name, scheduleTopic) {
				maskDelays(b, records)
			}
		case "consumequeue_ext":
			maskUnits(b, strings.Contains(name, scheduleTopic))
		case "index":
			// The name is a time.
			delete(all, name)
			indexEnds = append(indexEnds, int64(binary.BigEndian.Uint64(b[8:])))
			all[fmt.Sprintf("index/%d", len(indexEnds))] = maskIndex(t, b)
		case "config":
			// consumerFilter.json: nobody has asked for filters, the official broker writes an empty table. A .bak has what
			// was there before the last write, of which there are more or fewer.
			if delete(all, name); filepath.Ext(name) == ".json" && !strings.HasSuffix(name, "consumerFilter.json") {
				all[name] = maskJSON(b)
			}
		}
	}
	all["checkpoint"] = maskCheckpoint(all["checkpoint"], list, indexEnds)
	return all
}

// maskLog takes times and ports out of the records of one file, and puts properties in order.
func maskLog(t *testing.T, file []byte, start int64, records []record) {
	t.Helper()
	for _, r := range records {
		at := r.phyOffset - start
		if at < 0 || at >= int64(len(file)) || r.blank() {
			continue
		}
		b := file[at : at+int64(r.size)]
		host := func(v6 bool) int {
			if v6 {
				return 16
			}
			return 4
		}
		born, store := host(r.SysFlag&0x10 != 0), host(r.SysFlag&0x20 != 0)
		clear(b[40:48])                           // bornTimestamp
		clear(b[48+born : 52+born])               // bornHost's port
		clear(b[52+born : 60+born])               // storeTimestamp
		clear(b[60+born+store : 64+born+store])   // storeHost's port
		clear(b[68+born+store : 68+born+store+8]) // preparedTransactionOffset: no transactions here
		properties := b[len(b)-len(r.PropertiesText):]
		items := strings.Split(r.PropertiesText, "\x02")
		for i, item := range items {
			if k, v, _ := strings.Cut(item, "\x01"); k == "ORIGIN_MESSAGE_ID" {
				items[i] = k + "\x01" + maskId(v)
			}
		}
		slices.Sort(items)
		if copy(properties, strings.Join(items, "\x02")) != len(properties) {
			t.Errorf("properties at %d have another length", r.phyOffset)
		}
	}
}

// maskId takes the port out of an offset id.
func maskId(id string) string {
	host := len(id) - 8 - 16
	return id[:host] + "--------" + id[host+8:]
}

// maskDelays turns times of delivery into delays.
func maskDelays(file []byte, records map[int64]record) {
	for b := file; len(b) >= entrySize; b = b[entrySize:] {
		if r, ok := records[int64(binary.BigEndian.Uint64(b))]; ok && !r.blank() && binary.BigEndian.Uint32(b[8:]) != 0 {
			code := binary.BigEndian.Uint64(b[12:])
			if int64(code) <= maxExtAddress {
				continue
			}
			binary.BigEndian.PutUint64(b[12:], code-uint64(r.StoreTimestamp))
		}
	}
}

// maskIndex takes the times out of an index file.
func maskIndex(t *testing.T, file []byte) []byte {
	t.Helper()
	clear(file[:16])
	for at := 40 + 4*number(t, small["maxHashSlotNum"]); at+entrySize <= int64(len(file)); at += entrySize {
		clear(file[at+12 : at+16])
	}
	return file
}

// maskCheckpoint says to what the times of queues and index belong. Not that of the log: the official broker does not
// always write the last one. What is behind the three times is nobody's business.
func maskCheckpoint(file []byte, records []record, indexEnds []int64) []byte {
	logics, index := int64(binary.BigEndian.Uint64(file[8:])), int64(binary.BigEndian.Uint64(file[16:]))
	return fmt.Appendf(nil, "queues: %v of the last record; index: %d of %d files\n", logics == records[len(records)-1].StoreTimestamp,
		1+slices.Index(indexEnds, index), len(indexEnds))
}

var (
	dataVersion = regexp.MustCompile(`"(counter|timestamp)":\d+`)
	// halfConfig is the topic that the official broker makes when it looks for transactions, at the latest when it stops.
	halfConfig = regexp.MustCompile(`(?s)\t\t"RMQ_SYS_TRANS_HALF_TOPIC":\{.*?\n\t\t\},?\n`)
)

// maskJSON puts the lines of a table in order, that of a hash table in Java, and takes its version out.
func maskJSON(text []byte) []byte {
	text = halfConfig.ReplaceAll(text, nil)
	lines := strings.Split(dataVersion.ReplaceAllString(string(text), `"$1":0`), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, ",")
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, "\n"))
}
