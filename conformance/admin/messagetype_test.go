//go:build conformance

package admin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// Message types of topics, as mqadmin of 5.x sets them at a 5.3.3 broker and at rocketd; a 4.9 broker reads past them.
func TestMessageTypes(t *testing.T) {
	kind, err := target.Selected5()
	if err != nil {
		t.Fatal(err)
	}
	c := target.Start(t, target.Options{Kind: kind, Brokers: []target.BrokerOptions{{JVM: []string{"-Dtls.server.mode=disabled"}}}})
	b := c.Brokers[0]
	m := startMqadmin(t, c, target.Client5, filepath.Join(c.Dir(), "mqadmin5"))
	update := func(topic string, attributes ...string) string {
		t.Helper()
		return m.run(t, append([]string{"updateTopic", "-b", b.Addr, "-t", topic, "-r", "2", "-w", "2"}, attributes...)...)
	}
	// attributes of a topic in the answer to 351, and in the file.
	expect := func(topic, want string) {
		t.Helper()
		text := string(answerOf(t, b, wire.Request(351, "topic", topic)).Body)
		if at := strings.Index(text, `"attributes":`); at < 0 || !strings.HasPrefix(text[at+len(`"attributes":`):], want) {
			t.Errorf("351 answers %s of %s, want attributes %s", text, topic, want)
		}
	}
	for _, kind := range []string{"NORMAL", "FIFO", "DELAY", "TRANSACTION"} {
		if out := update("Typed"+kind, "-a", "+message.type="+kind); !strings.Contains(out, "create topic to "+b.Addr+" success.") {
			t.Errorf("%s: %s", kind, out)
		}
		expect("Typed"+kind, `{"message.type":"`+kind+`"}`)
	}
	update("TypedFIFO")
	expect("TypedFIFO", `{"message.type":"FIFO"}`)
	update("TypedFIFO", "-a", "+message.type=DELAY")
	expect("TypedFIFO", `{"message.type":"DELAY"}`)
	update("TypedNORMAL", "-a", "-message.type")
	expect("TypedNORMAL", `{}`)
	for attributes, remark := range map[string]string{
		"+message.type=ANY": "value is not in set: ", "+no.such=x": "unsupported key: no.such", "-message.type": "attempt to delete a nonexistent key: message.type",
	} {
		if out := update("TypedNORMAL", "-a", attributes); !strings.Contains(out, remark) {
			t.Errorf("%s: %s, want %s", attributes, out, remark)
		}
	}
	expect("TypedNORMAL", `{}`)
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(b.StoreDir, "config", "topics.json"))
	text := strings.Join(strings.Fields(string(data)), "")
	for _, want := range []string{`"TypedFIFO":{"attributes":{"message.type":"DELAY"}`, `"TypedDELAY":{"attributes":{"message.type":"DELAY"}`} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("topics.json lacks %s, %v:\n%s", want, err, data)
		}
	}
	if kind != target.Rocketd {
		return // a 4.9 broker on a 5.x directory is no case of ours
	}
	b.RunAs(target.Official)
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	if all := string(answerOf(t, b, wire.Request(21)).Body); !strings.Contains(all, `"TypedFIFO"`) {
		t.Errorf("the 4.9 broker has read %s", all)
	}
}

func answerOf(t *testing.T, b *target.Broker, f *wire.Frame) *wire.Frame {
	t.Helper()
	answer := ask(t, b.Addr, f)
	if answer.Code != 0 {
		t.Fatalf("code %d: %d %s", f.Code, answer.Code, answer.Remark)
	}
	return answer
}
