package house

import (
	"testing"

	"rocketd/broker"
	"rocketd/namesrv"
	"rocketd/protocol"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/admin"
)

// TestEveryCodeHasAKind: each declared code is one that changes something, or is said not to be; the kind fits where the code
// is served; and with access control the codes that change something need an administrator.
func TestEveryCodeHasAKind(t *testing.T) {
	routed, named := set(broker.Routed()), set(namesrv.Routed())
	for _, c := range protocol.RequestCodes() {
		kind := admin.KindOf(c)
		served := routed[c] || named[c]
		switch kind {
		case admin.Unknown:
			t.Errorf("%d %s has no kind in remoting/acl/admin/kind.go: does it change something that is an administrator's?", int(c), c)
		case admin.Unserved, admin.ToClient:
			if served {
				t.Errorf("%d %s is served, and its kind says that it is not", int(c), c)
			}
		case admin.Registration:
			if !named[c] {
				t.Errorf("%d %s is no code of the name server", int(c), c)
			}
		default:
			if !served {
				t.Errorf("%d %s is not served, and its kind says that it is", int(c), c)
			}
		}
		if routed[c] && acl.AdminOnly(c) != (kind == admin.Change) {
			t.Errorf("%d %s: access control and the admin surface do not agree on whether it is an administrator's", int(c), c)
		}
	}
}
