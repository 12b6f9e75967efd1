package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rocketd/store/inspect"
	"rocketd/store/storetest"
	"rocketd/store/vfs"
)

// officialStore unpacks a store of an official broker and returns its directory.
func officialStore(t *testing.T, name string) string {
	t.Helper()
	root := t.TempDir()
	storetest.UnpackTo(t, "../../store/testdata/"+name+".tar.gz", vfs.OS, root)
	return filepath.Join(root, "store")
}

func overwrite(t *testing.T, path string, at int64, b string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt([]byte(b), at)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestStoreInfo(t *testing.T) {
	dir := officialStore(t, "killed")
	code, out, errs := invoke("rocketd", "store", "info", dir)
	for _, want := range []string{"not stopped in order", "0 to 75365", "500 hash slots", "14 topics", "StoreTopic 3", "recovers from log offset 65536"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != exitOK || errs != "" {
		t.Errorf("code %d, %s", code, errs)
	}
	code, out, _ = invoke("rocketd", "store", "info", dir, "-o", "json")
	var info inspect.Info
	if err := json.Unmarshal([]byte(out), &info); code != exitOK || err != nil || info.Log.MaxPhyOffset != 75365 || info.CleanStop {
		t.Errorf("%v %+v", err, info)
	}
}

func TestStoreDump(t *testing.T) {
	dir := officialStore(t, "clean")
	for _, args := range [][]string{
		{"--limit", "2", "-o", "json", dir}, {dir, "--limit", "2", "-o", "json"}, {"-o=json", dir, "-t", "StoreTopic", "-q", "0", "--limit=2"},
	} {
		code, out, errs := invoke(append([]string{"rocketd", "store", "dump"}, args...)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		var r inspect.Record
		if err := json.Unmarshal([]byte(lines[0]), &r); code != exitOK || errs != "" || len(lines) != 2 || err != nil || r.Topic != "StoreTopic" {
			t.Errorf("%v: %d %s %v\n%s", args, code, errs, err, out)
		}
	}
	for want, args := range map[string][]string{
		"seed body 1": {dir, "--from", "235", "--to", "236", "--body"}, "49\tlog offset": {dir, "--what", "queue", "-t", "StoreTopic", "-q", "0", "--queue-from", "49"},
		"entry 1\thash": {dir, "--what", "index", "--limit", "1"}, "KEYS=key-1 shared-1": {dir, "-t", "StoreTopic", "-k", "key-1", "--since", "2026-11-29T18:54:26Z", "--until", "1795978466781"},
	} {
		if code, out, errs := invoke(append([]string{"rocketd", "store", "dump"}, args...)...); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%v: %d %s\n%s", args, code, errs, out)
		}
	}
}

// A dump that ends because of the default limit says so.
func TestStoreDumpTellsTheLimit(t *testing.T) {
	dir := officialStore(t, "clean") // with 282 records
	for want, args := range map[string][]string{
		"rocketd: this ends after 100; --limit N prints more\n": {dir}, "": {dir, "--limit", "100"},
		"rocketd: nothing matches\n": {dir, "--topic", "NoSuchTopic"},
	} {
		if code, _, errs := invoke(append([]string{"rocketd", "store", "dump"}, args...)...); code != exitOK || errs != want {
			t.Errorf("%v: %d %q, want %q", args, code, errs, want)
		}
	}
}

// The exit codes: 0 nothing is wrong, 1 there are findings, 2 it can't be read.
func TestStoreVerifyAndRepair(t *testing.T) {
	dir := officialStore(t, "clean")
	log := filepath.Join(dir, "commitlog", "00000000000000000000")
	queue := filepath.Join(dir, "consumequeue", "StoreTopic", "2", "00000000000000000000")
	step := func(want int, text string, args ...string) {
		t.Helper()
		code, out, errs := invoke(append([]string{"rocketd", "store"}, args...)...)
		if code != want || !strings.Contains(out+errs, text) {
			t.Errorf("%v: code %d, want %d and %q\n%s%s", args, code, want, text, out, errs)
		}
	}
	step(exitOK, "\nclean\n", "verify", dir)
	step(exitOK, `"clean": true`, "verify", "-o", "json", dir)
	overwrite(t, queue, 20, "damage")
	step(exitFindings, "FINDING queue-entry-wrong consumequeue/StoreTopic/2/00000000000000000000 at 20 (StoreTopic, queue 2, offset 1)", "verify", dir)
	step(exitFindings, `"queue-entry-wrong": 1`, "verify", dir, "-o", "json")
	step(exitFindings, "1 step would be taken", "repair", "--dry-run", dir)
	step(exitFindings, "1 finding: queue-entry-wrong 1", "verify", dir)
	step(exitOK, "rebuild consumequeue/StoreTopic/2", "repair", dir)
	step(exitOK, "\nclean\n", "verify", dir)
	overwrite(t, log, 1410+88, "X")
	step(exitFindings, "record-crc", "repair", dir)
	step(exitOK, `"fill"`, "repair", dir, "--fill", "-o", "json")
	step(exitOK, "were lost", "verify", dir)

	step(exitUnreadable, "no such file", "verify", filepath.Join(dir, "nothing"))
	step(exitUnreadable, "not a store directory", "info", filepath.Join(dir, "commitlog"))
	step(exitUnreadable, "no such file", "verify", dir, "-c", "/no/such/file")
	step(exitUsage, "--help", "verify")
	step(exitUsage, "--help", "verify", dir, "more")
	step(exitUsage, "yaml", "verify", dir, "-o", "yaml")
	step(exitUsage, "--help", "verify", dir, "--nothing")
	step(exitUsage, "--help", "check", dir)
	step(exitUsage, "--topic and --queue", "dump", dir, "--what", "queue")
	step(exitUsage, "neither a time", "dump", dir, "--since", "yesterday")
	step(exitOK, "--dry-run", "repair", "--help")
	step(exitOK, "put aside in damaged-OFFSET", "repair", "--help")
	step(exitOK, "clean", "repair", "--restore", dir)
	step(exitOK, "verify", "--help")
}

// Sizes of broker.conf go before those of the files; a commit log within storePathRootDir is looked for in DIR.
func TestStoreConfig(t *testing.T) {
	dir := officialStore(t, "clean")
	sizes := "maxHashSlotNum=500\nmaxIndexNum=400\nmappedFileSizeConsumeQueue=1000\nstorePathRootDir=/elsewhere\nstorePathCommitLog=/elsewhere/commitlog\n"
	good := conf(t, sizes+"mappedFileSizeCommitLog=65536\n")
	if code, out, errs := invoke("rocketd", "store", "verify", "-c", good, dir); code != exitOK {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs := invoke("rocketd", "store", "verify", "-c", conf(t, sizes), dir); code != exitFindings || !strings.Contains(out, "log-file-size") {
		t.Errorf("%d %s%s", code, out, errs)
	}
	here := conf(t, "storePathRootDir="+dir+"\nmappedFileSizeCommitLog=65536\nmaxHashSlotNum=500\nmaxIndexNum=400\nmappedFileSizeConsumeQueue=1000\n")
	if code, out, errs := invoke("rocketd", "store", "verify", "-c", here); code != exitOK || !strings.Contains(out, dir) {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// A store in use is read with a warning, and not mended.
func TestStoreInUse(t *testing.T) {
	dir := officialStore(t, "clean")
	lock, err := vfs.OS.Lock(filepath.Join(dir, "lock"), []byte("lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, command := range []string{"info", "dump", "verify"} {
		if code, _, errs := invoke("rocketd", "store", command, dir); code != exitOK || !strings.Contains(errs, "WARNING: a broker is running") {
			t.Errorf("%s: %d %s", command, code, errs)
		}
	}
	if code, _, errs := invoke("rocketd", "store", "repair", dir); code != exitUnreadable || !strings.Contains(errs, "stop it first") {
		t.Errorf("repair: %d %s", code, errs)
	}
}

func TestProgressLine(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	l := &progressLine{w: &out, clock: func() time.Time { return now }}
	l.next = now.Add(progressAfter)
	l.show(inspect.Progress{Stage: "verify the log", Done: 1, Total: 10})
	now = now.Add(time.Second)
	l.show(inspect.Progress{Stage: "verify the log", Done: 2, Total: 10})
	if l.clear(); out.Len() > 0 {
		t.Errorf("shown within two seconds: %q", out.String())
	}
	now = now.Add(3 * time.Second)
	l.show(inspect.Progress{Stage: "verify the log", Done: 5, Total: 10})
	if got := out.String(); got != "\r\x1b[Kverify the log [###############...............] 50 %, 4s left" {
		t.Errorf("%q", got)
	}
	l.show(inspect.Progress{Stage: "verify the log", Done: 6, Total: 10}) // too soon
	l.clear()
	l.clear()
	if got := out.String(); !strings.HasSuffix(got, "left\r\x1b[K") {
		t.Errorf("%q", got)
	}
	quiet := newProgressLine(&out)
	quiet.started = time.Unix(0, 0)
	quiet.next = quiet.started
	n := out.Len()
	if quiet.show(inspect.Progress{Stage: "x", Done: 1, Total: 2}); out.Len() != n {
		t.Error("shown where there is no terminal")
	}
}
