package acl

import (
	"slices"
	"strings"
	"testing"
)

// TestFileErrors: what is wrong and where, and nothing of a secret.
func TestFileErrors(t *testing.T) {
	const account = "accounts:\n- accessKey: someUser\n  secretKey: topSecret1\n"
	for text, want := range map[string]string{
		"accounts: [":   "f:2:1: did not find expected node content",
		"\taccounts: 1": "f:1:1: found character that cannot start any token",
		"accounts:\n- accessKey: a\n   secretKey: b":           "f:3:13: mapping values are not allowed in this context",
		account + "  admin: \x01topSecret1":                    "f:4:10: ",
		"accounts:\n- secretKey: *topSecret1":                  "f:2:14: unknown anchor",
		"accounts:\n- secretKey: \"topSecret1":                 "f:2:", // the quote has no end
		"accounts:\n  - accessKey: a\n  secretKey: topSecret1": "f:3:3: did not find expected '-' indicator",
		"- a":                                                        "f:1:1: the file must be a mapping",
		"accounts: a":                                                "f:1:11: accounts wants a list",
		"accounts:\n- a":                                             "f:2:3: an account must be a mapping",
		account + "  secretKey: topSecret1\n":                        "f:4:3: secretKey is there twice",
		account + "  admin: perhaps\n":                               "f:4:10: admin wants true or false",
		account + "  topicPerms: a=PUB\n":                            "f:4:15: topicPerms wants a list",
		account + "  topicPerms:\n  - topicA\n":                      "f:5:5: topicPerms wants name=PERMISSION",
		account + "  whiteRemoteAddress: 10.0.0\n":                   "f:4:23: Netaddress examine Exception netaddress is 10.0.0",
		account + "  whiteRemoteAddress: 10.0.0.x\n":                 "f:4:23: Netaddress examine Exception netaddress is 10.0.0.x",
		"globalWhiteRemoteAddresses:\n- 10.*.*\n":                    "f:2:3: Netaddress examine scope Exception netaddress is 10.*.*",
		"accounts:\n- accessKey: short\n  secretKey: topSecret1\n":   "f:2:3: The accessKey=short and secretKey=****** cannot be null and length should longer than 6 (the accessKey has 5 characters; give it 7 or more)",
		"accounts:\n- accessKey: someUser\n":                         "f:2:3: The accessKey=someUser and secretKey=null cannot be null and length should longer than 6 (there is no secretKey)",
		"accounts:\n- accessKey: someUser\n  secretKey: 1234567.5\n": "f:3:14: the value of secretKey is no text but a number, a time or a boolean for YAML: put it in quotes",
		"dataVersion:\n- counter: x\n":                               "f:2:12: counter wants a number",
	} {
		_, err := parse("f", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q:\n %v, want\n %s", text, err, want)
		} else if strings.Contains(err.Error(), "topSecret1") {
			t.Errorf("%q: the error has the secret: %v", text, err)
		}
	}
}

// TestFileSlips: a key that does not exist is named by the one that was likely meant; another one may be a secret.
func TestFileSlips(t *testing.T) {
	f, err := parse("f", []byte("accounts:\n- accessKey: someUser\n  secretKey: topSecret1\n  topicPerm:\n  - a=PUB\n  topSecret2: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range f.warnings {
		got = append(got, w.place.String()+": "+w.text)
	}
	want := []string{
		"f:4:3: a key without a meaning here; it is ignored. Perhaps topicPerms was meant", "f:6:3: a key without a meaning here; it is ignored",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestScalars: what SnakeYAML and fastjson make of what is not quoted.
func TestScalars(t *testing.T) {
	for text, secret := range map[string]string{
		"12345678": "12345678", `"12345678"`: "12345678", "'0123456'": "0123456", "12_345_678": "12345678", "+12345678": "12345678",
		"01234567012": "175304202", "0123456789": "0123456789", "0x7fffffff": "2147483647", "0b1111111111111111111111": "4194303", "-12345678": "-12345678",
		"abcdefgh": "abcdefgh", "a: b": "", "abc#defg": "abc#defg", "abcdefg # x": "abcdefg", "päßwörter": "päßwörter",
		"99999999999999999999999999": "99999999999999999999999999",
	} {
		f, err := parse("f", []byte("accounts:\n- accessKey: someUser\n  secretKey: "+text+"\n"))
		if secret == "" {
			if err == nil {
				t.Errorf("%s is taken", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		cmd := signed(34, "someUser", secret, nil)
		signature, _ := cmd.Field(fieldSignature)
		if !f.accounts[0].key.verify(cmd, signature) {
			t.Errorf("%s is not the secret %s", text, secret)
		}
	}
}

// TestFileMeaning: permissions, defaults, warnings, and what comes first of two.
func TestFileMeaning(t *testing.T) {
	f, err := parse("f", []byte(`
globalWhiteRemoteAddresses: ["", 10.0.0.1]
accounts:
- accessKey: someUser
  secretKey: someSecret
  admin: Yes
  defaultTopicPerm: PUBSUB
  whiteRemoteAddress:
  groupPerms: &perms [a=SUB, " b = PUB|SUB "]
  topicPerms:
  - "%RETRY%a=DENY"
  - T=WRITE
- accessKey: someUser
  secretKey: otherSecret
- accessKey: otherUser
  secretKey: someSecret
  groupPerms: *perms
  adminn: true
dataVersion:
- counter: 7
  timestamp: 1700000000000
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.global) != 2 || len(f.accounts) != 2 || f.version == nil || *f.version != (Version{7, 1700000000000}) {
		t.Fatalf("%+v", f)
	}
	a := f.accounts[0]
	if !a.Admin || a.all() || a.defaultTopic != Deny || a.groups["a"] != Deny || a.groups["b"] != Pub|Sub || a.topics["T"] != Deny || a.Place.String() != "f:4" {
		t.Errorf("%+v", a)
	}
	if b := f.accounts[1]; b.Admin || b.groups["a"] != Sub {
		t.Errorf("%+v", b)
	}
	var lines []string
	for _, w := range f.warnings {
		lines = append(lines, w.place.String())
	}
	if got := strings.Join(lines, " "); got != "f:7:21 f:12:5 f:13:3 f:18:3" {
		t.Errorf("warnings at %s", got)
	}
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "~"} {
		if f, err := parse("f", []byte(text)); err != nil || f.data {
			t.Errorf("%q: %+v, %v", text, f, err)
		}
	}
}

// FuzzFile: no text panics or has more nodes than signs; what can be read can be changed, and says the same afterwards.
func FuzzFile(f *testing.F) {
	for _, s := range []string{sample, "accounts:\n- accessKey: someUser\n  secretKey: 01234567\n", "a: &a [*a]\n", "accounts: []\n", "---\n...\n---\n", "? {a: b}\n: c\n",
		"dataVersion:\n- counter: 1\n  timestamp: 2\naccounts: [{accessKey: flowUser, secretKey: 'it''s long'}]\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before, document, err := parseDocument("f", []byte(text))
		if err != nil {
			return
		}
		if document != nil && nodes(document) > signs([]byte(text)) {
			t.Fatalf("%q has %d nodes and %d signs", text, nodes(document), signs([]byte(text)))
		}
		change := Change{AccessKey: "fuzzUser", SecretKey: "yes: \"no\" # 7"}
		out, err := edited("f", []byte(text), 1, change.update)
		if err != nil {
			return
		}
		after, err := parse("f", out)
		if err != nil {
			t.Fatalf("%q becomes %q: %v", text, out, err)
		}
		if len(after.global) != len(before.global) {
			t.Fatalf("%q becomes %q", text, out)
		}
		found := false
		for _, a := range after.accounts {
			found = found || a.AccessKey == "fuzzUser"
		}
		if n := len(after.accounts); !found || n != len(before.accounts) && n != len(before.accounts)+1 {
			t.Fatalf("%q becomes %q", text, out)
		}
	})
}

// TestAliasesAreCounted: a small file may ask for billions of values by aliases; it is refused before long. Nothing is nested so
// deep, or so much wrong, that reading it has no end.
func TestAliasesAreCounted(t *testing.T) {
	account := "accounts:\n- &a\n  accessKey: someUser\n  secretKey: topSecret1\n  topicPerms:\n" + strings.Repeat("  - t=PUB\n", 1000)
	f, err := parse("f", []byte(account+strings.Repeat("- *a\n", 100)))
	if err != nil || len(f.accounts) != 1 || len(f.warnings) != 100 {
		t.Fatalf("100 aliases: %v", err)
	}
	const want = "the file has more than 393216 keys and items, those behind an alias counted each time"
	if _, err := parse("f", []byte(account+strings.Repeat("- *a\n", 400))); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("400 aliases: %v", err)
	}
	if f, err := parse("f", []byte("accounts:\n"+strings.Repeat("- {accessKey: someUser, secretKey: topSecret1}\n", 1000))); err != nil || len(f.warnings) != 100 {
		t.Errorf("one key 1000 times: %v", err)
	}
	for name, text := range map[string]string{
		"itself": "accounts: &a\n- *a\n", "lists": strings.Repeat("[", 20_000), "mappings": strings.Repeat("{", 20_000),
	} {
		if _, err := parse("f", []byte(text)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
