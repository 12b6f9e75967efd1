package main

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

func TestTemplatesArePatchedInPlace(t *testing.T) {
	tp, err := newTemplate(batchRequest("T", 3, 2, 10))
	if err != nil {
		t.Fatal(err)
	}
	tp.setOpaque(7)
	tp.setKeys(123)
	f, err := wire.Read(bytes.NewReader(tp.bytes))
	if err != nil {
		t.Fatal(err)
	}
	if f.Code != 320 || f.Opaque != firstOpaque+7 || f.Ext["e"] != "3" || f.Ext["m"] != "true" {
		t.Errorf("%+v", f)
	}
	for _, key := range []string{"UNIQKEYUNIQKEYUN0000000000000123", "UNIQKEYUNIQKEYUN0000000000000124"} {
		if len(key) != uniqKeyLength || !bytes.Contains(f.Body, []byte(key)) {
			t.Errorf("no key %s in %q", key, f.Body)
		}
	}
	if tp, err = newTemplate(pullRequest("T", 1)); err != nil {
		t.Fatal(err)
	}
	tp.setOffset(42)
	if f, err = wire.Read(bytes.NewReader(tp.bytes)); err != nil || f.Ext["queueOffset"] != "0000000042" {
		t.Errorf("%+v, %v", f, err)
	}
	if tp, err = newTemplate(sendRequest("T", 0, 5)); err != nil || len(tp.keys) != 1 || tp.offset != -1 {
		t.Errorf("%+v, %v", tp, err)
	}
}

func TestResponsesOfAnySize(t *testing.T) {
	var stream bytes.Buffer
	sizes := []int{0, 100, 1 << 20, 5}
	for i, n := range sizes {
		f := &wire.Frame{Code: 19 * (i % 2), Flag: 1, Opaque: int32(firstOpaque + i), Language: "JAVA", Body: bytes.Repeat([]byte{byte(i)}, n),
			Ext: map[string]string{"nextBeginOffset": "77"}}
		stream.Write(f.Encode())
	}
	rs := newResponses(&stream)
	for i, n := range sizes {
		r, err := rs.read()
		if err != nil {
			t.Fatal(err)
		}
		next, err := r.nextBeginOffset()
		if r.code != 19*(i%2) || r.opaque != i || len(r.body) != n || next != 77 || err != nil {
			t.Errorf("answer %d: code %d, opaque %d, %d bytes, next %d, %v", i, r.code, r.opaque, len(r.body), next, err)
		}
		if i == 0 && !rs.ready() {
			t.Error("the second answer is here and not seen")
		}
	}
	if rs.ready() {
		t.Error("an answer after the last")
	}
}

func TestBodiesOfAPull(t *testing.T) {
	record := make([]byte, 84)
	record = append(binary.BigEndian.AppendUint32(record, 5), "hello"...)
	record = append(record, 1, 'T', 0, 0)
	binary.BigEndian.PutUint32(record, uint32(len(record)))
	var got []string
	if err := bodies(append(bytes.Clone(record), record...), func(b []byte) { got = append(got, string(b)) }); err != nil || strings.Join(got, " ") != "hello hello" {
		t.Errorf("%q, %v", got, err)
	}
	if err := bodies(record[:80], func([]byte) {}); err == nil {
		t.Error("a short record was taken")
	}
}

func TestProcFiles(t *testing.T) {
	stat := "4711 (a (strange) name) S 1 1 1 0 -1 4194560 100 0 0 0 250 150 0 0 20 0 9 0 100 1000 200"
	if d, err := parseStat([]byte(stat)); err != nil || d.Seconds() != 4 {
		t.Errorf("%s, %v", d, err)
	}
	if n, err := parseStatus("VmRSS:\t  900 kB\nRssAnon:\t    1024 kB\nRssFile:\t 1 kB\n"); err != nil || n != mib {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", "1 (x) S 1"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestTableHasMediansAndRatios(t *testing.T) {
	r := newResults()
	for _, v := range []float64{30, 10, 20} {
		r.add(target.Official, "send 128 B, 64x32: server CPU", v)
	}
	for _, v := range []float64{4, 6} {
		r.add(target.Rocketd, "send 128 B, 64x32: server CPU", v)
	}
	r.add(target.Rocketd, "send one at a time: p50", 0.04)
	tb := r.table(settings{rounds: 3}, 0)
	if len(tb.lines) != 2 {
		t.Fatalf("%q", tb.lines)
	}
	if got := strings.Join(tb.lines[0][2:], " "); got != "20.00 5.00 0.250 ≤ 0.25 reached" {
		t.Errorf("got %s", got)
	}
	if got := strings.Join(tb.lines[1][2:], " "); got != "- 0.040  ≤ 0.7 " {
		t.Errorf("got %s", got)
	}
	if !strings.Contains(tb.markdown(), "| 20.00 | 5.00 | 0.250 |") || !strings.Contains(tb.text(), "reached") {
		t.Error(tb.markdown(), tb.text())
	}
}

func TestFlags(t *testing.T) {
	s, err := parse([]string{"-quick", "-rounds", "1", "-kinds", "rocketd"})
	if err != nil || s.rounds != 1 || len(s.kinds) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := parse([]string{"-kinds", "kafka"}); err == nil {
		t.Error("a strange server was taken")
	}
}
