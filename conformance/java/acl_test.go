//go:build conformance

package java

import (
	"strings"
	"testing"

	"rocketd/conformance/target"
)

// aclAccounts are those of AclCases.java, but for the permissions of the one that consumes.
const aclAccounts = `globalWhiteRemoteAddresses:
- 10.99.99.*
accounts:
- accessKey: theAdmin
  secretKey: adminSecret
  admin: true
- accessKey: producer
  secretKey: producerSecret
  defaultTopicPerm: PUB
- accessKey: consumer
  secretKey: consumerSecret
`

// TestACL runs the cases of access control, with clients that sign each request.
func TestACL(t *testing.T) {
	t.Parallel()
	needJava(t)
	runs := []struct {
		name, client, prefix string
		jvm                  []string
	}{
		{"client-4.9.8", target.Client4, "a4", nil},
		{"client-5.5.0", target.Client5, "a5", nil},
		{"client-4.9.8-binary", target.Client4, "a4b", []string{"-Drocketmq.serialize.type=ROCKETMQ"}},
	}
	var topics, groups strings.Builder
	for _, r := range runs {
		for _, name := range []string{"acl-push", "acl-orderly"} {
			topics.WriteString("  - " + r.prefix + "-" + name + "=SUB\n")
			groups.WriteString("  - G-" + r.prefix + "-" + name + "-c=SUB\n")
		}
	}
	c := target.Start(t, target.Options{Brokers: []target.BrokerOptions{{
		Name: "broker-a", Conf: map[string]string{"traceTopicEnable": "true"},
		ACL: aclAccounts + "  topicPerms:\n" + topics.String() + "  groupPerms:\n" + groups.String(),
	}}})
	for _, r := range runs {
		skip := "(?!acl-).*"
		if c.Kind == target.Official {
			skip += "|acl-unique-key" // refused there: the server does not sign all that the client signs
			if r.client == target.Client5 {
				skip += "|acl-trace" // 5.x tools ask for topics by a code that a 4.9 broker does not know
			}
		}
		t.Run(r.name, func(t *testing.T) {
			run(t, c, r.client, r.jvm, "prefix="+r.prefix, "accessKey=theAdmin", "secretKey=adminSecret", "only="+selected("acl-.*"), "skip="+skip)
		})
	}
}
