package acl

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"rocketd/protocol"
)

// TestSignatureVector: made with the official classes.
func TestSignatureVector(t *testing.T) {
	cmd := &protocol.Command{Code: 310, Body: []byte("hello")}
	for _, f := range [][2]string{{"m", "false"}, {"a", "PG"}, {"b", "topicB"}, {"c", "TBW102"}, {"d", "4"}, {"e", "0"}, {"f", "0"},
		{"Signature", "SUY4edL1N1IKmm4kVFS58D1n3xE="}, {"g", "1700000000000"}, {"h", "0"}, {"i", ""}, {"j", "0"}, {"k", "false"}, {"AccessKey", "RocketMQ"}} {
		cmd.SetField(f[0], f[1])
	}
	key := newSigningKey("12345678")
	if !key.verify(cmd, "SUY4edL1N1IKmm4kVFS58D1n3xE=") {
		t.Error("the official signature does not fit")
	}
	for _, wrong := range []string{"", "SUY4edL1N1IKmm4kVFS58D1n3xF=", "SUY4edL1N1IKmm4kVFS58D1n3xE", "suy4edl1n1ikmm4kvfs58d1n3xe="} {
		if key.verify(cmd, wrong) {
			t.Errorf("%q fits", wrong)
		}
	}
	other := newSigningKey("12345679")
	if other.verify(cmd, "SUY4edL1N1IKmm4kVFS58D1n3xE=") {
		t.Error("another secret fits")
	}
}

// TestRecordedSignatures: what stock clients of Java 4.9.8, Java 5.5.0, Go and mqadmin signed, in the JSON form as they sent
// it and in the binary form, which carries the same fields.
func TestRecordedSignatures(t *testing.T) {
	file, err := os.Open("testdata/signed.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	key := newSigningKey("12345678")
	n := 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var rec struct{ Client, Header, Body string }
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			t.Fatal(err)
		}
		var cmd protocol.Command
		if err := protocol.DecodeHeader(protocol.JSON, rec.Header, &cmd); err != nil {
			t.Fatal(err)
		}
		if cmd.Body, err = base64.StdEncoding.DecodeString(rec.Body); err != nil {
			t.Fatal(err)
		}
		signature, _ := cmd.Field("Signature")
		if !key.verify(&cmd, signature) {
			t.Errorf("%s, code %d: the signature does not fit", rec.Client, cmd.Code)
		}
		if cmd.Body = append(cmd.Body, 'x'); key.verify(&cmd, signature) {
			t.Errorf("%s, code %d: a changed body fits", rec.Client, cmd.Code)
		}
		n++
	}
	if n < 25 {
		t.Errorf("%d recordings", n)
	}
}

// TestFieldOrder: Java orders by UTF-16 code units, in which U+10000 comes before U+FFFD.
func TestFieldOrder(t *testing.T) {
	keys := []string{"Z", "a", "ab", "b", "é", "\U00010000", "�", "zz", "abcdefghi", "abcdefgh", ""}
	want := []string{"", "Z", "a", "ab", "abcdefgh", "abcdefghi", "b", "zz", "é", "\U00010000", "�"}
	slices.SortFunc(keys, compareUTF16)
	if !slices.Equal(keys, want) {
		t.Errorf("%q", keys)
	}
	for _, n := range []int{3, 20, 63, 64, 65, 200} {
		var fields []protocol.Field
		for i := range n {
			fields = append(fields, protocol.Field{Key: "k" + strconv.Itoa(i*7919%n), Value: "v"})
		}
		var o fieldOrder
		o.sort(fields)
		if len(o.places) != n {
			t.Errorf("%d of %d fields", len(o.places), n)
		}
		for i := 1; i < len(o.places); i++ {
			if a, b := fields[o.places[i-1]].Key, fields[o.places[i]].Key; a > b {
				t.Errorf("%d fields: %s before %s", n, a, b)
			}
		}
	}
}

// TestOrderIsForgotten: the order of one request does no harm to the next, whatever its fields are.
func TestOrderIsForgotten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &signer{hash: sha1.New()}
		key := newSigningKey("12345678")
		for range 4 {
			keys := rapid.SliceOfN(rapid.StringMatching("[a-cZé]{0,2}|[a-z]{9,10}"), 0, 80).Draw(t, "keys")
			var fields []protocol.Field
			last := map[string]string{}
			for i, k := range keys {
				fields = append(fields, protocol.Field{Key: k, Value: k + strconv.Itoa(i)})
				last[k] = fields[i].Value
			}
			var want []byte
			for _, k := range slices.SortedFunc(maps.Keys(last), compareUTF16) {
				want = append(want, last[k]...)
			}
			cmd := &protocol.Command{Fields: fields}
			s.sign(&key, cmd, s.order(cmd), true)
			if string(s.values) != string(want) {
				t.Fatalf("%q signs %q, want %q", keys, s.values, want)
			}
		}
	})
}

// TestLongSecret: a key longer than a block is hashed. RFC 2202, test case 6.
func TestLongSecret(t *testing.T) {
	secret := string(slices.Repeat([]byte{0xaa}, 80))
	key := newSigningKey(secret)
	s := signers.Get().(*signer)
	defer s.release()
	got, err := base64.StdEncoding.DecodeString(string(s.sign(&key, &protocol.Command{Body: []byte("Test Using Larger Than Block-Size Key - Hash Key First")}, &fieldOrder{}, false)))
	if err != nil {
		t.Fatal(err)
	}
	rfc := []byte{0xaa, 0x4a, 0xe5, 0xe1, 0x52, 0x72, 0xd0, 0x0e, 0x95, 0x70, 0x56, 0x37, 0xce, 0x8a, 0x3b, 0x55, 0xed, 0x40, 0x21, 0x12}
	if !slices.Equal(got, rfc) {
		t.Errorf("%x", got)
	}
}

// TestCheckAllocates: a check of a send that is let in costs no garbage.
func TestCheckAllocates(t *testing.T) {
	if raceOn {
		t.Skip("the race detector empties pools")
	}
	table := newRoom(t, sample).open()
	cmd := benchSend()
	if n := testing.AllocsPerRun(1000, func() {
		if table.Check(cmd, stranger) != nil {
			t.Fatal("refused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func benchSend() *protocol.Command {
	return signed(protocol.SendMessageV2, "oracleUser", "87654321", make([]byte, 128),
		"a", "PG", "b", "topicB", "c", "TBW102", "d", "4", "e", "3", "f", "0", "g", "1700000000000", "h", "0",
		"i", "UNIQ_KEY\x017F000001000018B4AAC20A1B2C3D0000\x02WAIT\x01true\x02TAGS\x01TagA\x02", "j", "0", "k", "false", "m", "false", "n", "broker-a")
}

// BenchmarkCheck is the whole check of a 128-byte send.
func BenchmarkCheck(b *testing.B) {
	f, err := parse("x", []byte(sample))
	if err != nil {
		b.Fatal(err)
	}
	rules := merge([]string{"x"}, map[string]*loaded{"x": {file: f}}, nil)
	cmd := benchSend()
	b.ReportAllocs()
	for b.Loop() {
		if d := rules.Check(cmd, stranger); !d.Allowed() {
			b.Fatal(d.text())
		}
	}
}
