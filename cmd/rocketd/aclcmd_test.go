package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What `rocketd admin acl check` says, and its exit code.
func TestAdminACLCheck(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "conf", "plain_acl.yml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("globalWhiteRemoteAddresses:\n- 10.1.*.*\naccounts:\n- accessKey: consumer\n  secretKey: consumerSecret\n  topicPerms:\n  - T=SUB\n  groupPerms:\n  - g=SUB\n")
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"-k consumer --op SUB -t T -g g": {0, "allowed: groupPerms of the account has g=SUB (" + path + ":4)"},
		"-k consumer --op PUB -t T":      {1, "denied: No default permission for topic:T: topicPerms of the account has T=SUB (" + path + ":4)"},
		"-k consumer --op PUB -t U": {1, "denied: No default permission for topic:U: topicPerms of the account does not have U, and its defaultTopicPerm is DENY (" +
			path + ":4)"},
		"-k consumer --op SUB -t SCHEDULE_TOPIC_XXXX": {1, "denied: No default permission for topic:SCHEDULE_TOPIC_XXXX: topicPerms of the account does not have SCHEDULE_TOPIC_XXXX, for which no default counts: messages of other topics wait there"},
		"-k consumer --op SUB -t %RETRY%h":            {1, "denied: No default permission for group:h: groupPerms of the account does not have h"},
		"-k consumer --code 17":                       {1, "denied: Need admin permission for request code=17, but accessKey=consumer is not"},
		"-k nobody1 -t T":                             {1, "denied: No acl config for nobody1: no ACL file has an account with this key"},
		"-a 10.1.2.3 -t T":                            {0, "allowed: the address is in the global white list (10.1.*.*)"},
		"-a 10.2.2.3 -t T":                            {1, "denied: No accessKey is configured"},
	} {
		code, out, errs := invoke(append([]string{"rocketd", "admin", "acl", "check", "--home", home}, strings.Fields(args)...)...)
		if code != want.code || !strings.HasPrefix(out, want.text) || errs != "" {
			t.Errorf("%s: code %d, %q, %q", args, code, out, errs)
		}
	}
	file := conf(t, "adminAllowedNetworks=10.1.0.0/16\n")
	for args, want := range map[string]string{
		"-a 10.2.0.1 --code 25 -k consumer": "denied: UPDATE_BROKER_CONFIG is refused from 10.2.0.1: adminAllowedNetworks (10.1.0.0/16) does not have this address\n",
		"-a 10.1.0.1 --code 25":             "allowed: the address is in the global white list (10.1.*.*): nothing else is looked at\n",
		"-a 10.2.0.1 --code 11 -k consumer": "allowed: the request needs no more than an account (" + path + ":4)\n",
	} {
		code, out, errs := invoke(append([]string{"rocketd", "admin", "acl", "check", "--home", home, "-c", file}, strings.Fields(args)...)...)
		if out != want || errs != "" || (code == 0) != strings.HasPrefix(want, "allowed") {
			t.Errorf("%s: code %d, %q, %q", args, code, out, errs)
		}
	}
	write("accounts:\n- accessKey: consumer\n  secretKey: \"mySecretKey\n")
	code, out, errs := invoke("rocketd", "admin", "acl", "check", "--home", home, "-k", "consumer", "-t", "T")
	if code != 2 || out != "" || !strings.Contains(errs, path+":") || strings.Contains(errs, "mySecretKey") {
		t.Errorf("a bad file: code %d, %q, %q", code, out, errs)
	}
	for _, args := range []string{"", "-k consumer --op READ", "-k consumer --address x", "-k consumer surplus"} {
		if code, _, errs := invoke(append([]string{"rocketd", "admin", "acl", "check", "--home", home}, strings.Fields(args)...)...); code != exitUsage || errs == "" {
			t.Errorf("%q: code %d, %q", args, code, errs)
		}
	}
}
