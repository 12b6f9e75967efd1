//go:build conformance

package differential

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"rocketd/conformance/target"
	"rocketd/conformance/wire"
	"rocketd/remoting/acl/acltest"
)

var secrets = map[string]string{"oracleAdmin": "12345678", "oracleUser": "87654321"}

// checkedCluster is a cluster whose broker checks access.
func checkedCluster() (*target.Target, error) {
	conf := recordedConf()
	conf["aclEnable"] = "true"
	return target.StartMain(target.Options{Brokers: []target.BrokerOptions{{
		Name: "acl-a", Cluster: "AclCluster", Conf: conf, Files: map[string]string{"conf/plain_acl.yml": acltest.Recorded},
	}}})
}

// signature is what a client of an account puts into a request: HMAC-SHA1 of the fields' values in the order of their
// names, and of the body. unsigned are fields that do not count.
func signature(f *wire.Frame, secret string, unsigned ...string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	for _, k := range slices.Sorted(maps.Keys(f.Ext)) {
		if k != "Signature" && !slices.Contains(unsigned, k) {
			fmt.Fprint(mac, f.Ext[k])
		}
	}
	mac.Write(f.Body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signer returns what signs a request again as it was when its fields have been adapted; what was not signed by one of
// the accounts stays as it is.
func signer(f *wire.Frame) func() {
	secret, was := secrets[f.Ext["AccessKey"]], f.Ext["Signature"]
	for _, unsigned := range []string{"", "_UNIQUE_KEY_QUERY"} {
		if secret != "" && signature(f, secret, unsigned) == was {
			return func() { f.Ext["Signature"] = signature(f, secret, unsigned) }
		}
	}
	return func() { f.Set("Signature", was) }
}
