package acl

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/protocol/header"
)

// TestCredentials: what credentials sign is right for an administrator whose ACL file was made for them, with a typed header, with
// fields and with a body; a changed request is not.
func TestCredentials(t *testing.T) {
	home := t.TempDir()
	tools := filepath.Join(home, "conf", "tools.yml")
	if err := os.MkdirAll(filepath.Dir(tools), 0o755); err != nil {
		t.Fatal(err)
	}
	text := ToolsText("theAdmin")
	if err := os.WriteFile(tools, text, 0o600); err != nil {
		t.Fatal(err)
	}
	accounts, err := AccountsText(tools)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(accounts), "accounts:\n") || !strings.Contains(string(accounts), "- accessKey: \"theAdmin\"\n") || !strings.Contains(string(accounts), "  admin: true\n") {
		t.Errorf("the ACL file is\n%s", accounts)
	}
	if err := os.WriteFile(filepath.Join(home, "conf", "plain_acl.yml"), accounts, 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := Load(Folder{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadCredentials(tools)
	if err != nil {
		t.Fatal(err)
	}
	sign := func() *protocol.Command {
		cmd := protocol.NewRequest(protocol.RegisterBroker, &header.RegisterBrokerRequest{
			BrokerName: "broker-a", BrokerAddr: "127.0.0.1:10911", BrokerId: 0, BodyCrc32: protocol.Some[int32](7)}, []byte("body"))
		cmd.SetField("other", "ä")
		c.Sign(cmd)
		return cmd
	}
	for _, form := range []protocol.SerializeType{protocol.JSON, protocol.Binary} {
		cmd := sign()
		cmd.Serialize = form
		got, err := protocol.DecodeFrame(protocol.AppendFrame(nil, cmd))
		if err != nil {
			t.Fatal(err)
		}
		if d := rules.Check(got, netip.MustParseAddr("10.0.0.1")); d.Reason != Administrator {
			t.Errorf("form %d: %s; fields %v", form, d.Explain(), got.Fields)
		}
		if name, _ := got.Field("brokerName"); name != "broker-a" {
			t.Errorf("form %d: fields %v", form, got.Fields)
		}
		got.Body = []byte("another")
		if d := rules.Check(got, netip.MustParseAddr("10.0.0.1")); d.Reason != BadSignature {
			t.Errorf("form %d, another body: %s", form, d.Explain())
		}
	}
	if again := ToolsText("theAdmin"); string(again) == string(text) {
		t.Error("two secrets are one")
	}
}

func TestReadCredentialsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tools.yml")
	if _, err := ReadCredentials(path); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]string{
		"":      "must be a mapping",
		"- a\n": "must be a mapping",
		"accessKey: theAdmin\nsecretKey: verySecret: x\n": "tools.yml",
		"accessKey: theAdmin\n":                           "The accessKey=theAdmin and secretKey=null cannot be null",
		"accessKey: theAdmin\nsecretKey: six666\n":        "The accessKey=theAdmin and secretKey=****** cannot be null",
		"accessKey: theAdmin\nsecretKey: [verySecret]\n":  "secretKey wants a text",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCredentials(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "verySecret") || strings.Contains(err.Error(), "six666") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
