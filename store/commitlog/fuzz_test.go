package commitlog

import (
	"path"
	"testing"

	"rocketd/protocol/message"
	"rocketd/store/segment"
	"rocketd/store/vfs"
)

// FuzzRecover overwrites a part of an official log with any bytes. It demands: no panic; records that end before the
// damage stay; what is found can be read; the log can be written on, and then holds what was found and the new record.
func FuzzRecover(f *testing.F) {
	f.Add(uint32(0), []byte{})
	f.Add(uint32(64502), message.AppendBlank(nil, 8))
	f.Add(uint32(75000), []byte("\x00\x00\x00\xf0\xda\xa3\x20\xa7"))
	f.Add(uint32(100), make([]byte, 4096))
	o, _ := golden(f, "killed")
	files := map[int64][]byte{}
	for start := int64(0); start < 3*fileSize; start += fileSize {
		files[start] = raw(f, o, start)
	}
	f.Fuzz(func(t *testing.T, at uint32, damage []byte) {
		o := options()
		if err := vfs.MkdirAllSync(o.FS, o.Dir); err != nil {
			t.Fatal(err)
		}
		from := int64(at) % (3 * fileSize)
		damage = damage[:min(int64(len(damage)), fileSize-from%fileSize)]
		for start, content := range files {
			if err := (vfs.Files{FS: o.FS}).WriteFile(path.Join(o.Dir, segment.Name(start)), content); err != nil {
				t.Fatal(err)
			}
		}
		if len(damage) > 0 {
			overwrite(t, o, from, damage)
		}
		l, found := recovered(t, o)
		same(t, scan(t, l, 0), found)
		kept := 0
		for _, m := range found {
			if m.PhyOffset+int64(message.RecordSize(&m)) <= from {
				kept++
			}
		}
		if want := recordsBefore(files, from); kept < want {
			t.Fatalf("%d records before the damage at %d, %d found", want, from, kept)
		}
		p := put(msg(0, "more", 100))
		mustAppend(t, l, p)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l, again := recovered(t, o)
		defer l.Close()
		same(t, again, append(found, *p.Message))
	})
}

// recordsBefore counts the records of the undamaged log that end at or before an offset.
func recordsBefore(files map[int64][]byte, offset int64) (n int) {
	for at := int64(0); ; {
		size, err := message.Check(files[at-at%fileSize][at%fileSize:], true)
		if err == message.ErrBlank {
			at += fileSize - at%fileSize
			continue
		}
		if at += int64(size); err != nil || at > offset {
			return n
		}
		n++
	}
}
