//go:build conformance

package admin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
)

const aclFile = `# accounts of the case
globalWhiteRemoteAddresses:
- 10.99.99.*
accounts:
- accessKey: theAdmin
  secretKey: "12345678"
  admin: true
- accessKey: firstUser
  secretKey: firstSecret
  defaultTopicPerm: PUB
- accessKey: secondUser
  secretKey: secondSecret
  defaultTopicPerm: PUB
`

// aclKit is a cluster of two brokers with access control, and mqadmin with an administrator's credentials.
type aclKit struct {
	*mqadmin
	target *target.Target
}

// may tells whether a signed send is let in; "" as key = one without a signature.
func (k *aclKit) may(t *testing.T, b *target.Broker, accessKey, secretKey string) bool {
	t.Helper()
	f := wire.Request(310, "a", "P", "b", "AclTopic", "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", "1700000000000", "h", "0", "i", "KEYS\x01k", "j", "0", "k", "false", "m", "false").
		WithBody([]byte("hello"))
	if accessKey != "" {
		f.Sign(accessKey, secretKey)
	}
	a, err := wire.CallOnce(b.Addr, f, settled)
	if err != nil {
		t.Fatal(err)
	}
	return !strings.Contains(a.Remark, "AclException")
}

// soon waits until a change is in force: the official broker looks at its files every 5 s.
func (k *aclKit) soon(t *testing.T, what string, want bool, accessKey, secretKey string) {
	t.Helper()
	deadline := time.Now().Add(settled)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for _, b := range k.target.Brokers {
		for k.may(t, b, accessKey, secretKey) != want {
			if time.Now().After(deadline) {
				t.Fatalf("%s: at %s the send of %q is let in: %v", what, b.Name, accessKey, !want)
			}
			<-tick.C
		}
	}
}

// TestACL is H20 and administration by the stock tool: every change is in force within seconds, at every broker of the
// cluster, and touches nobody else.
func TestACL(t *testing.T) {
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{
		{Name: "acl-a", Cluster: "AclCluster", ACL: aclFile}, {Name: "acl-b", Cluster: "AclCluster", ACL: aclFile},
	}})
	home := filepath.Join(c.Dir(), "mqadmin")
	k := &aclKit{startMqadmin(t, c, target.Client4, home), c}
	a := c.Brokers[0]

	k.fails(t, "CODE: 1  DESC: org.apache.rocketmq.acl.common.AclException: No accessKey is configured, org.apache.rocketmq.acl.plain.PlainPermissionManager.validate(",
		"updateTopic", "-b", a.Addr, "-t", "AclTopic")
	if err := os.WriteFile(filepath.Join(home, "conf", "tools.yml"), []byte("accessKey: theAdmin\nsecretKey: 12345678\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := k.run(t, "updateTopic", "-c", "AclCluster", "-t", "AclTopic", "-r", "1", "-w", "1"); strings.Count(out, "success.") != 2 {
		t.Errorf("updateTopic prints\n%s", out)
	}
	out := k.run(t, "clusterAclConfigVersion", "-c", "AclCluster")
	for _, b := range c.Brokers {
		if want := strings.Join([]string{"AclCluster", b.Name, b.Addr, b.ACLFile, "0"}, " "); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("clusterAclConfigVersion prints\n%s\nwithout %s", out, want)
		}
	}

	// A secret that changes in the file.
	for _, broker := range c.Brokers {
		if err := os.WriteFile(broker.ACLFile, []byte(strings.Replace(aclFile, "firstSecret", "anotherSecret", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.soon(t, "a secret changed in the file", true, "firstUser", "anotherSecret")
	k.soon(t, "a secret changed in the file", false, "firstUser", "firstSecret")
	k.soon(t, "another account", true, "secondUser", "secondSecret")

	// The white list.
	if out := k.run(t, "updateGlobalWhiteAddr", "-c", "AclCluster", "-g", "127.0.0.1,10.10.103.*"); strings.Count(out, "update global white remote addresses to ") != 2 {
		t.Errorf("updateGlobalWhiteAddr prints\n%s", out)
	}
	k.soon(t, "the address is in the white list", true, "", "")
	k.run(t, "updateGlobalWhiteAddr", "-c", "AclCluster", "-g", "10.10.103.*")
	k.soon(t, "the address is in no white list", false, "", "")
	k.soon(t, "an account after both", true, "firstUser", "anotherSecret")

	// Add, delete, add again.
	add := []string{"updateAclConfig", "-c", "AclCluster", "-a", "newUser", "-s", "abcdefgh", "-i", "DENY", "-t", "AclTopic=PUB,topicB=PUB|SUB", "-g", "groupA=SUB"}
	for range 2 {
		if out := k.run(t, add...); strings.Count(out, "create or update plain access config to ") != 2 || strings.Count(out, " success.") != 2 {
			t.Errorf("updateAclConfig prints\n%s", out)
		}
		k.soon(t, "a new account", true, "newUser", "abcdefgh")
		k.soon(t, "another account", true, "secondUser", "secondSecret")
		if out := k.run(t, "deleteAclConfig", "-c", "AclCluster", "-a", "newUser"); strings.Count(out, "delete plain access config account from ") != 2 {
			t.Errorf("deleteAclConfig prints\n%s", out)
		}
		k.soon(t, "a deleted account", false, "newUser", "abcdefgh")
	}
	k.fails(t, "CODE: 210  DESC: The accesskey[newUser] corresponding to accessConfig has been deleted failed.", "deleteAclConfig", "-b", a.Addr, "-a", "newUser")
	shown := "abc"
	if c.Kind == target.Rocketd {
		shown = "******"
	}
	k.fails(t, "CODE: 209  DESC: The accessKey=shortUser and secretKey="+shown+" cannot be null and length should longer than 6",
		"updateAclConfig", "-b", a.Addr, "-a", "shortUser", "-s", "abc")
	k.fails(t, "CODE: 209  DESC: Parse resource permission error for topicA=READ.", "updateAclConfig", "-b", a.Addr, "-a", "newUser", "-s", "abcdefgh", "-t", "topicA=READ")
	k.fails(t, "CODE: 211  DESC: The globalWhiteAddresses[10.0.0.1] has been updated failed.", "updateGlobalWhiteAddr", "-b", a.Addr, "-g", "10.0.0.1", "-p", filepath.Join(home, "none.yml"))

	// The file says how often it was changed, and is still one that the other server reads.
	rows := table(k.run(t, "clusterAclConfigVersion", "-b", a.Addr))
	if len(rows) < 1 || len(rows[0]) < 5 || rows[0][3] != a.ACLFile || rows[0][4] != "6" {
		t.Errorf("clusterAclConfigVersion prints %v", rows)
	}
	for _, broker := range c.Brokers {
		text, err := os.ReadFile(broker.ACLFile)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "newUser") || !strings.Contains(string(text), "secondUser") || !strings.Contains(string(text), "10.10.103.*") {
			t.Errorf("%s has now\n%s", broker.Name, text)
		}
	}
}
