package acl

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"rocketd/protocol"
)

// may tells whether an account's signed heartbeat is let in.
func may(t *Table, accessKey, secret string) bool {
	return t.Check(signed(protocol.HeartBeat, accessKey, secret, nil), stranger) == nil
}

// TestAdministration is H20: changes by file and by request, each in force at once, others untouched; comments stay.
func TestAdministration(t *testing.T) {
	r := newRoom(t, "# ours\naccounts:\n# the first\n- accessKey: userOne\n  secretKey: secretOne # changed yearly\n  topicPerms:\n  - T=PUB\n- accessKey: userTwo\n  secretKey: secretTwo\n")
	table := r.open()
	r.write("plain_acl.yml", strings.Replace(r.text("plain_acl.yml"), "secretOne", "secretNew", 1))
	if err := table.Reload(); err != nil {
		t.Fatal(err)
	}
	if may(table, "userOne", "secretOne") || !may(table, "userOne", "secretNew") || !may(table, "userTwo", "secretTwo") {
		t.Error("after a secret has changed in the file")
	}
	if ok, err := table.SetGlobal([]string{"10.1.1.*"}, ""); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if table.Check(&protocol.Command{Code: 34}, netip.MustParseAddr("10.1.1.9")) != nil || !may(table, "userTwo", "secretTwo") || may(table, "userOne", "secretOne") {
		t.Error("after the white list has changed")
	}
	three := Change{AccessKey: "userThree", SecretKey: "0123456", DefaultTopicPerm: "PUB", TopicPerms: []string{"T=SUB"}}
	if err := table.Update(three); err != nil {
		t.Fatal(err)
	}
	if !may(table, "userThree", "0123456") || !may(table, "userTwo", "secretTwo") {
		t.Error("after an account was added")
	}
	if ok, err := table.Delete("userThree"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := table.Delete("userThree"); ok || err != nil {
		t.Fatal(ok, err)
	}
	if may(table, "userThree", "0123456") {
		t.Error("a deleted account is let in")
	}
	if err := table.Update(three); err != nil {
		t.Fatal(err)
	}
	// Of an account that is there what the request does not say stays.
	if err := table.Update(Change{AccessKey: "userOne", SecretKey: "secretEnd", DefaultGroupPerm: "SUB"}); err != nil {
		t.Fatal(err)
	}
	send := signed(protocol.SendMessageV2, "userOne", "secretEnd", nil, "b", "T")
	if err := table.Check(send, stranger); err != nil {
		t.Errorf("a permission is lost: %v", err)
	}
	want := `# ours
accounts:
# the first
- accessKey: "userOne"
  secretKey: "secretEnd" # changed yearly
  topicPerms:
  - T=PUB
  admin: false
  defaultGroupPerm: SUB
- accessKey: userTwo
  secretKey: secretTwo
- accessKey: "userThree"
  secretKey: "0123456"
  admin: false
  defaultTopicPerm: PUB
  topicPerms:
  - T=SUB
globalWhiteRemoteAddresses:
- 10.1.1.*
dataVersion:
- counter: 5
  timestamp: 1800000000000
`
	if got := r.text("plain_acl.yml"); got != want {
		t.Errorf("the file is now\n%s", got)
	}
	if info, _ := os.Stat(r.path("plain_acl.yml")); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	files, standard := table.Versions()
	if len(files) != 1 || files[0].Path != r.path("plain_acl.yml") || files[0].Counter != 5 || standard != (Version{5, 1_800_000_000_000}) {
		t.Errorf("%+v %+v", files, standard)
	}
	if again := r.open(); !may(again, "userOne", "secretEnd") || !may(again, "userThree", "0123456") {
		t.Error("after a restart")
	}
	for _, secret := range []string{"secretOne", "secretNew", "secretTwo", "0123456", "secretEnd"} {
		if strings.Contains(r.logs.String(), secret) {
			t.Errorf("the log has the secret %s:\n%s", secret, r.logs)
		}
	}
}

// TestRefusedChanges: official texts, and nothing is written.
func TestRefusedChanges(t *testing.T) {
	r := newRoom(t, sample)
	table := r.open()
	bad := "10.0.0"
	for want, c := range map[string]Change{
		"The accessKey=short and secretKey=****** cannot be null and length should longer than 6":                             {AccessKey: "short", SecretKey: "12345678"},
		"The accessKey=newUser and secretKey=null cannot be null and length should longer than 6":                             {AccessKey: "newUser"},
		"The accessKey=null and secretKey=null cannot be null and length should longer than 6":                                {},
		"Parse Resource format error for topicA.\nThe expected resource format is 'Res=Perm'. For example: topicA=SUB":        {AccessKey: "newUser", SecretKey: "12345678", TopicPerms: []string{"topicA"}},
		"Parse resource permission error for g=READ.\nThe expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'.": {AccessKey: "newUser", SecretKey: "12345678", GroupPerms: []string{"g=READ"}},
		"Netaddress examine Exception netaddress is 10.0.0":                                                                   {AccessKey: "newUser", SecretKey: "12345678", WhiteRemoteAddress: &bad},
	} {
		if err := table.Update(c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := table.SetGlobal([]string{"10.0"}, ""); err == nil {
		t.Error("a white list that can't be read is taken")
	}
	outside := r.home + "/other.yml"
	if err := os.WriteFile(outside, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{outside, r.home + "/conf/../other.yml", r.home + "/../etc/passwd.yml", "/etc/passwd", "plain_acl.yml", r.home + "/conf/none.yml", r.home + "/conf"} {
		if ok, err := table.SetGlobal([]string{"10.0.0.1"}, path); ok || err != nil {
			t.Errorf("%s: %v %v", path, ok, err)
		}
	}
	if ok, err := table.Delete(""); ok || err != nil {
		t.Error(ok, err)
	}
	if r.text("plain_acl.yml") != sample {
		t.Errorf("the file is now\n%s", r.text("plain_acl.yml"))
	}
}

// TestFolder: files of conf/acl come first, by name; a change goes to the file that has the account.
func TestFolder(t *testing.T) {
	r := newRoom(t, "accounts:\n- accessKey: shared1\n  secretKey: fromDefault\n- accessKey: lastUser\n  secretKey: lastSecret\n")
	r.write("acl/b/two.yaml", "accounts:\n- accessKey: shared1\n  secretKey: fromTwo\n")
	r.write("acl/a.yml", "accounts:\n- accessKey: shared1\n  secretKey: fromOne\n")
	r.write("acl/.hidden.yml", "accounts:\n- accessKey: hidden1\n  secretKey: hiddenSecret\n")
	r.write("acl/notes.txt", "no YAML: [")
	table := r.open()
	if !may(table, "shared1", "fromOne") || may(table, "shared1", "fromTwo") || !may(table, "lastUser", "lastSecret") || may(table, "hidden1", "hiddenSecret") {
		t.Error("order of files")
	}
	if n := strings.Count(r.logs.String(), "an accessKey is in two ACL files"); n != 2 {
		t.Errorf("%d warnings:\n%s", n, r.logs)
	}
	if err := table.Update(Change{AccessKey: "shared1", SecretKey: "newSecret"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.text("acl/a.yml"), "newSecret") || strings.Contains(r.text("plain_acl.yml"), "newSecret") {
		t.Error("the change went elsewhere")
	}
	if ok, err := table.Delete("shared1"); !ok || err != nil {
		t.Fatal(ok, err)
	}
	for _, secret := range []string{"newSecret", "fromTwo", "fromDefault"} {
		if may(table, "shared1", secret) {
			t.Errorf("a deleted account is let in with %s", secret)
		}
	}
	if ok, err := table.SetGlobal([]string{"10.0.0.1"}, r.path("acl/a.yml")); !ok || err != nil {
		t.Error(ok, err)
	}
	if err := os.Remove(r.path("acl/a.yml")); err != nil {
		t.Fatal(err)
	}
	if err := table.Reload(); err != nil || table.Check(&protocol.Command{}, netip.MustParseAddr("10.0.0.1")) == nil {
		t.Errorf("rules of a file that is gone: %v", err)
	}
}

// TestBadReload: old rules stay, the log says what is wrong and where, once; a start refuses.
func TestBadReload(t *testing.T) {
	r := newRoom(t, sample)
	table := r.open()
	for _, text := range []string{"accounts:\n- accessKey: oracleUser\n  secretKey: [topSecret1\n", ""} {
		r.write("plain_acl.yml", text)
		for range 3 {
			_ = table.Reload()
		}
		if !may(table, "oracleUser", "87654321") {
			t.Errorf("%q: old rules are gone", text)
		}
		if err := table.Update(Change{AccessKey: "oracleUser", SecretKey: "12345678"}); text != "" && err == nil {
			t.Errorf("%q is written to", text)
		}
	}
	logs := r.logs.String()
	if strings.Count(logs, "old rules stay in force") != 2 || !strings.Contains(logs, "plain_acl.yml:4:1: ") || strings.Contains(logs, "topSecret1") {
		t.Errorf("the log:\n%s", logs)
	}
	r.write("plain_acl.yml", "accounts: a\n")
	if _, err := Open(r.options()); err == nil || !strings.Contains(err.Error(), "plain_acl.yml:1:11: accounts wants a list") {
		t.Errorf("a start: %v", err)
	}
	r.write("plain_acl.yml", "accounts:\n- accessKey: oracleUser\n  secretKey: another1\n")
	if err := table.Reload(); err != nil || !may(table, "oracleUser", "another1") {
		t.Errorf("the next good one: %v", err)
	}
}

// TestConcurrentChanges: none is lost, none is seen by halves.
func TestConcurrentChanges(t *testing.T) {
	r := newRoom(t, sample)
	table := r.open()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 4 {
				if err := table.Update(Change{AccessKey: fmt.Sprintf("newUser%d-%d", i, j), SecretKey: "someSecret"}); err != nil {
					t.Error(err)
				}
				if !may(table, "oracleUser", "87654321") {
					t.Error("an account was gone for a moment")
				}
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		for j := range 4 {
			if !may(table, fmt.Sprintf("newUser%d-%d", i, j), "someSecret") {
				t.Errorf("newUser%d-%d is lost", i, j)
			}
		}
	}
	if _, v := table.Versions(); v.Counter != 32 {
		t.Errorf("counter %d", v.Counter)
	}
}

// TestWatch: a changed file, a new one and one less count without a word from anybody.
func TestWatch(t *testing.T) {
	r := newRoom(t, sample)
	table := r.open()
	table.Start()
	defer table.Close()
	eventually := func(what string, ok func() bool) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for !ok() {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not seen", what)
			}
			<-tick.C
		}
	}
	r.write("plain_acl.yml", strings.Replace(sample, "87654321", "anotherOne", 1))
	eventually("a changed file", func() bool { return may(table, "oracleUser", "anotherOne") })
	r.write("acl/more.yml", "accounts:\n- accessKey: moreUser\n  secretKey: moreSecret\n")
	eventually("a new file", func() bool { return may(table, "moreUser", "moreSecret") })
	r.write("acl/more.yml", "accounts:\n- accessKey: moreUser\n  secretKey: lessSecret\n")
	eventually("a changed file of a new folder", func() bool { return may(table, "moreUser", "lessSecret") })
	if err := os.Rename(r.path("acl/more.yml"), r.path("acl/more.yml.old")); err != nil {
		t.Fatal(err)
	}
	eventually("a file less", func() bool { return !may(table, "moreUser", "lessSecret") })
	if !may(table, "oracleUser", "anotherOne") {
		t.Error("others are touched")
	}
}

// TestModes: files that others can read are said, and new ones are not such.
func TestModes(t *testing.T) {
	r := newRoom(t, sample)
	r.open()
	if strings.Contains(r.logs.String(), "OTHERS MAY") {
		t.Errorf("the log:\n%s", r.logs)
	}
	if err := os.Chmod(r.path("plain_acl.yml"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.open()
	if !strings.Contains(r.logs.String(), "OTHERS MAY READ OR CHANGE AN ACL FILE") {
		t.Errorf("the log:\n%s", r.logs)
	}
	empty := newRoom(t, "")
	if err := os.Remove(empty.path("plain_acl.yml")); err != nil {
		t.Fatal(err)
	}
	empty.open()
	if info, err := os.Stat(empty.path("plain_acl.yml")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new file: %v %v", info, err)
	}
	if !strings.Contains(empty.logs.String(), "LETS NOBODY IN") {
		t.Errorf("the log:\n%s", empty.logs)
	}
	if _, err := Open(Options{}); err == nil {
		t.Error("without a home")
	}
}
