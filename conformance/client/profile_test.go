//go:build conformance && newest

package client

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

// TestSecureProfile: the client with TLS and credentials against servers of the profile; without credentials it is refused.
// Of this client only the newest commit has TLS, and it checks no certificate.
func TestSecureProfile(t *testing.T) {
	t.Parallel()
	kind, err := target.Selected()
	if err != nil {
		t.Fatal(err)
	}
	if kind != target.Rocketd {
		t.Skip("the official servers have no profiles")
	}
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "conf"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"plain_acl.yml": aclAccounts, "tools.yml": "accessKey: theAdmin\nsecretKey: adminSecret\n"} {
		if err := os.WriteFile(filepath.Join(home, "conf", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	conf, secure := map[string]string{"rocketmqHome": home}, &tls.Config{InsecureSkipVerify: true}
	s := target.Start(t, target.Options{Profile: "secure", Secure: secure, NamesrvConf: conf, Brokers: []target.BrokerOptions{{Conf: conf}}})
	c := &cluster{s, strings.Split(s.Namesrv, ";")}
	w, err := wire.DialTLS(s.Brokers[0].Addr, secure)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f, err := w.Call(wire.Request(17, "topic", "AclT", "defaultTopic", "TBW102", "readQueueNums", "2", "writeQueueNums", "2", "perm", "6",
		"topicFilterType", "SINGLE_TAG", "topicSysFlag", "0", "order", "false").Sign("theAdmin", "adminSecret"), patience)
	if err != nil || f.Code != 0 {
		t.Fatalf("topic: %v, %v", f, err)
	}

	var got inbox
	c.newPush(t, subscription{topic: "AclT", group: "G-Acl", listen: got.collect, options: []consumer.Option{consumer.WithTls(true),
		consumer.WithCredentials(primitive.Credentials{AccessKey: "consumer", SecretKey: "consumerSecret"})}})
	p := c.newProducer(t, producer.WithTls(true), producer.WithCredentials(primitive.Credentials{AccessKey: "producer", SecretKey: "producerSecret"}))
	got.expect(t, sendSome(t, p, "AclT", 0, 4))
	_, err = c.newProducer(t, producer.WithTls(true)).SendSync(context.Background(), primitive.NewMessage("AclT", []byte("x")))
	if err == nil || !strings.Contains(err.Error(), "No accessKey is configured") {
		t.Errorf("without credentials: %v", err)
	}
}
