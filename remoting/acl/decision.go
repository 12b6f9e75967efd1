package acl

import (
	"fmt"
	"strconv"

	"rocketd/protocol"
	"rocketd/protocol/message"
)

// Reason is why a request is let in or refused.
type Reason uint8

// The reasons; those from NoAccessKey on refuse.
const (
	GlobalAddress  Reason = iota // the peer is in a global white list
	AccountAddress               // the peer is in the account's white list
	TraceTopic                   // message traces need no permission
	Administrator                // an administrator without permissions of its own
	Permitted                    // every resource is permitted, or none is needed
	NoAccessKey
	UnknownAccessKey
	BadSignature
	NeedsAdmin
	NoPermission
)

// Decision is what the rules say about one request, and why.
type Decision struct {
	Reason    Reason
	AccessKey string
	Code      protocol.RequestCode
	Pattern   *Pattern // of the address that decided
	Account   *Account // that decided; nil = none
	Resource  Resource // that decided
	Listed    bool     // by a permission of the account, not by its default
}

// Allowed tells whether the request is let in.
func (d *Decision) Allowed() bool { return d.Reason < NoAccessKey }

// refusal is a reason's text and where in 4.9.8 it is thrown; clients see both.
type refusal struct {
	method string
	line   int
}

// places are the official ones of 4.9.8 (PlainPermissionManager).
var places = map[Reason]refusal{
	NoAccessKey: {"validate", 664}, UnknownAccessKey: {"validate", 668}, BadSignature: {"validate", 684},
	NeedsAdmin: {"checkPerm", 581},
}

// text is the official text of a refusal.
func (d *Decision) text() string {
	switch d.Reason {
	case NoAccessKey:
		return "No accessKey is configured"
	case UnknownAccessKey:
		return "No acl config for " + d.AccessKey
	case BadSignature:
		return "Check signature failed for accessKey=" + d.AccessKey
	case NeedsAdmin:
		return "Need admin permission for request code=" + strconv.Itoa(int(d.Code)) + ", but accessKey=" + d.AccessKey + " is not"
	case NoPermission:
		return "No default permission for " + d.Resource.String()
	}
	return ""
}

// Err is the answer of a refused request, nil for one that is let in: code 1 and the text of the official exception.
func (d *Decision) Err() error {
	if d.Allowed() {
		return nil
	}
	place := places[d.Reason]
	if d.Reason == NoPermission {
		if place = (refusal{"checkPerm", 606}); d.Listed {
			place.line = 611
		}
	}
	return protocol.Errorf(protocol.SystemError, "%s", "org.apache.rocketmq.acl.common.AclException: "+d.text()+
		", org.apache.rocketmq.acl.plain.PlainPermissionManager."+place.method+"(PlainPermissionManager.java:"+strconv.Itoa(place.line)+")")
}

// Explain says in words what decided.
func (d *Decision) Explain() string {
	switch d.Reason {
	case GlobalAddress:
		return fmt.Sprintf("the address is in the global white list (%s): nothing else is looked at", d.Pattern)
	case AccountAddress:
		return fmt.Sprintf("the address is in the account's whiteRemoteAddress (%s; %s): no signature and no permission is needed", d.Pattern, d.Account.Place)
	case TraceTopic:
		return "message traces need a signature and no permission"
	case Administrator:
		return fmt.Sprintf("the account is an administrator without permissions of its own (%s)", d.Account.Place)
	case Permitted:
		if d.Resource.Name == "" {
			return fmt.Sprintf("the request needs no more than an account (%s)", d.Account.Place)
		}
		return d.because()
	case NoPermission:
		return d.text() + ": " + d.because()
	case NeedsAdmin:
		return fmt.Sprintf("%s (%s: admin is false)", d.text(), d.Account.Place)
	case UnknownAccessKey:
		return d.text() + ": no ACL file has an account with this key"
	}
	return d.text()
}

// because names the line of the file that decided about a resource.
func (d *Decision) because() string {
	p, listed := d.Account.permission(d.Resource)
	kind, fallback := "topicPerms", "defaultTopicPerm"
	if d.Resource.Group {
		kind, fallback = "groupPerms", "defaultGroupPerm"
	}
	if !listed && !d.Resource.Group && message.HoldsOthers(d.Resource.Name) {
		return fmt.Sprintf("topicPerms of the account does not have %s, for which no default counts: messages of other topics wait there (%s)", d.Resource.Name, d.Account.Place)
	}
	if listed {
		return fmt.Sprintf("%s of the account has %s=%s (%s)", kind, d.Resource.Name, p, d.Account.Place)
	}
	return fmt.Sprintf("%s of the account does not have %s, and its %s is %s (%s)", kind, d.Resource.Name, fallback, p, d.Account.Place)
}
