//go:build conformance

package acl

import (
	"os"
	"testing"

	"rocketd/conformance/target"
)

// TestRewrittenFile: an ACL file that one kind of broker has changed, by every code that changes it, means the same to the
// other. The secrets are what YAML writes in more than one way.
func TestRewrittenFile(t *testing.T) {
	t.Parallel()
	for from, to := range map[target.Kind]target.Kind{target.Rocketd: target.Official, target.Official: target.Rocketd} {
		t.Run(string(from)+" to "+string(to), func(t *testing.T) {
			t.Parallel()
			options := func(kind target.Kind, text string) target.Options {
				return target.Options{Kind: kind, Brokers: []target.BrokerOptions{{Name: "acl-r", ACL: text}}}
			}
			first := target.Start(t, options(from, accounts))
			odd := []string{"00123456", "0x1F00aa", "1e400000", "true:no# ", "a'b\"c\\d}", "- *&!%@`|"}
			names := []string{"octal", "hexadecimal", "exponent", "comment", "quotes", "indicators"}
			for i, name := range names {
				change := request(50, "", "")()
				for k, v := range map[string]string{"accessKey": name + "Account", "secretKey": odd[i], "admin": "false", "whiteRemoteAddress": "", "defaultTopicPerm": "DENY",
					"defaultGroupPerm": "SUB", "topicPerms": "aclPub=PUB,aclSub=SUB", "groupPerms": "aclDeniedGroup=DENY"} {
					change.Set(k, v)
				}
				if a := ask(t, first.Brokers[0].Addr, change.Sign("theAdmin", secrets["theAdmin"])); a.Code != 0 {
					t.Fatalf("account %s: %d %s", name, a.Code, a.Remark)
				}
			}
			for _, change := range []struct {
				code   int
				fields string
			}{{51, "accessKey=consumer"}, {53, "globalWhiteAddrs=10.88.88.*,fe80::1"}, {50, "accessKey=theUser secretKey=changedSecret"}} {
				if a := ask(t, first.Brokers[0].Addr, request(change.code, change.fields, "")().Sign("theAdmin", secrets["theAdmin"])); a.Code != 0 {
					t.Fatalf("%d: %d %s", change.code, a.Code, a.Remark)
				}
			}
			text, err := os.ReadFile(first.Brokers[0].ACLFile)
			if err != nil {
				t.Fatal(err)
			}
			if err := first.Brokers[0].Stop(); err != nil {
				t.Fatal(err)
			}
			addr := target.Start(t, options(to, string(text))).Brokers[0].Addr
			for i, name := range names {
				key := name + "Account"
				for topic, want := range map[string]string{"aclPub": "", "aclSub": denied("topic:aclSub"), "aclAny": denied("topic:aclAny")} {
					if got := refusal(ask(t, addr, send(310, "a=P b="+topic)().Sign(key, odd[i]))); got != want {
						t.Errorf("%s sends to %s: %q, want %q\n%s", key, topic, got, want, text)
					}
				}
			}
			for what, tt := range map[string]struct{ key, secret, want string }{
				"the administrator": {"theAdmin", secrets["theAdmin"], ""},
				"one deleted":       {"consumer", secrets["consumer"], "No acl config for consumer"},
				"one changed":       {"theUser", "changedSecret", ""},
				"its old secret":    {"theUser", secrets["theUser"], "Check signature failed for accessKey=theUser"},
			} {
				if got := refusal(ask(t, addr, send(310, "a=P b=aclPub")().Sign(tt.key, tt.secret))); got != tt.want {
					t.Errorf("%s: %q, want %q", what, got, tt.want)
				}
			}
		})
	}
}
