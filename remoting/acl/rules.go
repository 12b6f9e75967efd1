package acl

import (
	"net/netip"

	"rocketd/protocol"
)

// traceTopic is where clients send traces by default; tracing needs no permission.
const traceTopic = "RMQ_SYS_TRACE_TOPIC"

// Rules are all ACL files together. They never change: a changed file makes new ones.
type Rules struct {
	global   []Pattern
	accounts map[string]*Account
}

// Check decides about a request from an address. It does not allocate for sends and pulls.
func (r *Rules) Check(cmd *protocol.Command, from netip.Addr) Decision {
	key, has := cmd.Field(fieldAccessKey)
	d := r.identify(key, has, from)
	d.Code = protocol.RequestCode(cmd.Code)
	if d.Reason != Permitted {
		return d
	}
	signature, _ := cmd.Field(fieldSignature)
	if !d.Account.key.verify(cmd, signature) {
		d.Reason = BadSignature
		return d
	}
	if d.Account.all() {
		d.Reason = Administrator
		return d
	}
	var room [maxResources]Resource
	authorize(&d, needs(cmd, room[:0]))
	return d
}

// Ask decides about a request whose signature is right: what `rocketd admin acl check` explains.
func (r *Rules) Ask(accessKey string, from netip.Addr, code protocol.RequestCode, wanted []Resource) Decision {
	d := r.identify(accessKey, accessKey != "", from)
	d.Code = code
	if d.Reason == Permitted {
		authorize(&d, wanted)
	}
	return d
}

// identify looks at the address and the access key: reason Permitted means that the signature is next.
func (r *Rules) identify(key string, has bool, from netip.Addr) Decision {
	d := Decision{Reason: Permitted, AccessKey: key}
	for i := range r.global {
		if r.global[i].Matches(from) {
			d.Reason, d.Pattern = GlobalAddress, &r.global[i]
			return d
		}
	}
	if !has {
		d.Reason = NoAccessKey
		return d
	}
	if d.Account = r.accounts[key]; d.Account == nil {
		d.Reason = UnknownAccessKey
		return d
	}
	if d.Account.white.Matches(from) {
		d.Reason, d.Pattern = AccountAddress, &d.Account.white
	}
	return d
}

// signer is the account whose signature cmd carries; the reason is Permitted when it is right. Addresses do not count here.
func (r *Rules) signer(cmd *protocol.Command) Decision {
	d := Decision{Reason: NoAccessKey, Code: protocol.RequestCode(cmd.Code)}
	key, has := cmd.Field(fieldAccessKey)
	if !has {
		return d
	}
	d.AccessKey, d.Reason = key, UnknownAccessKey
	if d.Account = r.accounts[key]; d.Account == nil {
		return d
	}
	d.Reason = BadSignature
	if signature, _ := cmd.Field(fieldSignature); d.Account.key.verify(cmd, signature) {
		d.Reason = Permitted
	}
	return d
}

// authorize decides about what an account wants, once its signature is right (PlainPermissionManager#validate from the
// trace topic on).
func authorize(d *Decision, wanted []Resource) {
	a := d.Account
	if onlyTraces(wanted) {
		d.Reason = TraceTopic
		return
	}
	if !a.Admin && AdminOnly(d.Code) {
		d.Reason = NeedsAdmin
		return
	}
	if a.all() {
		d.Reason = Administrator
		return
	}
	for _, w := range wanted {
		p, listed := a.permission(w)
		d.Resource, d.Listed = w, listed
		if !p.allows(w.Need) {
			d.Reason = NoPermission
			return
		}
	}
}

// onlyTraces tells whether all that is wanted is to send traces.
func onlyTraces(wanted []Resource) bool {
	for _, w := range wanted {
		if w.Group || w.Name != traceTopic || w.Need != Pub {
			return false
		}
	}
	return len(wanted) > 0
}
