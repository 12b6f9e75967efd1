package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"rocketd/broker"
	"rocketd/compat"
	"rocketd/namesrv"
	"rocketd/remoting"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/admin"
)

// The profile "secure": access control, nothing but TLS, administration from this machine only, signed registrations. What it needs
// and does not find it makes at the first start, below conf in rocketmqHome; it never replaces a file. What the configuration says goes
// before the profile, but not against what makes it secure.

func profileFlag() cli.Flag {
	return &cli.StringFlag{Name: "profile", Usage: "a `NAME`d set of settings: secure = access control, TLS only, administration from this machine (SECURITY.md); " +
		"makes an administrator and a certificate at the first start and says where"}
}

// isSecure tells whether the profile is asked for.
func isSecure(c *cli.Context) (bool, error) {
	switch name := c.String("profile"); name {
	case "":
		return false, nil
	case "secure":
		return true, nil
	default:
		return false, &usageError{fmt.Sprintf("--profile %s: there is no such profile; the only one is secure", name)}
	}
}

// The profile's files, below rocketmqHome.
const (
	toolsFile       = "conf/tools.yml"
	identityFile    = "conf/rocketd-identity.pem"
	certificateFile = "conf/rocketd-cert.pem"
)

// administrator is the access key of the account that is made.
const administrator = "rocketdAdmin"

// secureTLS are the settings that go before those of the configuration.
func secureTLS(t *remoting.TLSConfig) {
	t.Mode, t.TestMode, t.Client.AuthPeer = remoting.TLSEnforcing, "false", true
}

// secureBroker are the profile's settings before the configuration is read.
func secureBroker(cfg *broker.Config) {
	cfg.AclEnable, cfg.AdminAllowedNetworks = true, admin.Loopback
	secureTLS(&cfg.TLS)
}

// secureNamesrv are the profile's settings before the configuration is read.
func secureNamesrv(cfg *namesrv.Config) {
	cfg.AdminAllowedNetworks, cfg.AdminAccountsOnly, cfg.BrokerAccountsOnly = admin.Loopback, true, true
	secureTLS(&cfg.TLS)
}

// profileHome is rocketmqHome, when nobody has said which it is: a folder that name server and broker of a user share.
func profileHome(home string, options []jvmOptions) (string, error) {
	if home == "" {
		user, err := homeDir("rocketmqHome", options...)
		if err != nil {
			return "", err
		}
		home = filepath.Join(user, "rocketd")
	}
	return filepath.Abs(home)
}

// against is an error about a setting that takes away what the profile is for.
func against(setting string) error {
	return fmt.Errorf("--profile secure: the configuration says %s; remove that, or start without the profile", setting)
}

// finishTLS checks the settings of TLS after the configuration was read, and puts the profile's files where none are named.
func finishTLS(t *remoting.TLSConfig, home string) error {
	e, err := t.Effective()
	if err != nil {
		return err
	}
	switch {
	case !strings.EqualFold(string(e.Mode), string(remoting.TLSEnforcing)):
		return against("tls.server.mode=" + string(e.Mode))
	case !e.Checked():
		return against("tls.test.mode.enable=true")
	case !e.Dials():
		return against("tls.enable=" + e.Enable)
	case !e.Client.AuthPeer:
		return against("tls.client.authServer=false")
	}
	if e.Server.CertPath != "" || e.Server.KeyPath != "" {
		return nil // and name servers are trusted by tls.client.trustCertPath, or the system's authorities
	}
	t.Server.CertPath = filepath.Join(home, identityFile)
	t.Server.KeyPath = t.Server.CertPath
	if e.Client.TrustCertPath == "" {
		t.Client.TrustCertPath = filepath.Join(home, certificateFile)
	}
	return nil
}

// finishBroker checks the configuration of a broker, with what requests have changed in earlier runs, and names the profile's files.
func finishBroker(cfg *broker.Config, options ...jvmOptions) (err error) {
	if cfg.RocketmqHome, err = profileHome(cfg.RocketmqHome, options); err != nil {
		return err
	}
	updated, err := cfg.WithUpdates()
	if err != nil {
		return err
	}
	if !updated.AclEnable {
		return against("aclEnable=false")
	}
	if err := errors.Join(finishTLS(&updated.TLS, cfg.RocketmqHome), finishTLS(&cfg.TLS, cfg.RocketmqHome)); err != nil {
		return err
	}
	switch {
	case !updated.DialsTLS():
		return against("useTLS=false")
	case updated.AdminAllowedNetworks == "" && cfg.AdminAllowedNetworks != "":
		return against("adminAllowedNetworks=")
	case cfg.AdminAllowedNetworks == "":
		cfg.AdminAllowedNetworks = admin.Loopback
	}
	tools := filepath.Join(cfg.RocketmqHome, toolsFile)
	if _, err := os.Stat(tools); cfg.NamesrvAccountFile == "" && (err == nil || !filled(cfg.AclFolder().Default())) {
		cfg.NamesrvAccountFile = tools
	}
	return nil
}

// finishNamesrv checks the configuration of a name server and names the profile's files.
func finishNamesrv(cfg *namesrv.Config, options ...jvmOptions) (err error) {
	if cfg.RocketmqHome, err = profileHome(cfg.RocketmqHome, options); err != nil {
		return err
	}
	switch {
	case !cfg.AdminAccountsOnly:
		return against("adminAccountsOnly=false")
	case cfg.AdminAllowedNetworks == "":
		cfg.AdminAllowedNetworks = admin.Loopback
	}
	return finishTLS(&cfg.TLS, cfg.RocketmqHome)
}

// filled tells whether there is a file that holds something.
func filled(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() > 0
}

// secured collects what there is to say of the files of a server of the profile.
type secured struct {
	lines []string
}

func (s *secured) say(format string, args ...any) {
	s.lines = append(s.lines, "rocketd profile secure: "+fmt.Sprintf(format, args...))
}

// made is how a file is spoken of.
func made(now bool) string {
	if now {
		return "made now"
	}
	return "as it was"
}

// firstUse makes the files that the profile needs and that are not there, and says of each where it is and what is to be filled in.
// Several servers may do so at the same moment. signs: the server signs what it sends to others. No secret is said.
func firstUse(folder acl.Folder, t remoting.TLSConfig, networks string, signs bool, hosts []string) (notes []string, err error) {
	var s secured
	tools, accounts := filepath.Join(folder.Home, toolsFile), folder.Default()
	madeTools := false
	if !filled(accounts) {
		if madeTools, err = compat.WriteNewFile(tools, acl.ToolsText(administrator), 0o600); err != nil {
			return nil, fmt.Errorf("--profile secure: %w", err)
		}
		text, err := acl.AccountsText(tools)
		if err != nil {
			return nil, fmt.Errorf("--profile secure: %w", err)
		}
		if _, err := compat.WriteNewFile(accounts, text, 0o600); err != nil {
			return nil, fmt.Errorf("--profile secure: %w", err)
		}
	}
	if c, err := acl.ReadCredentials(tools); err == nil {
		s.say("administrator %s, %s: its secret is only in %s and %s (ROCKETMQ_HOME=%s for mqadmin)", c.AccessKey, made(madeTools), tools, accounts, folder.Home)
	} else if errors.Is(err, os.ErrNotExist) && !signs {
		s.say("accounts are those of %s", accounts)
	} else if errors.Is(err, os.ErrNotExist) {
		s.say("to do: write accessKey and secretKey of an administrator of %s into %s (mode 600): without it this broker signs nothing, and a name server of this profile refuses it; "+
			"then start again", accounts, tools)
	} else {
		return nil, fmt.Errorf("--profile secure: %w", err)
	}
	s.say("to do: give each application an account with its topics and groups in %s; a change counts at once", accounts)
	if own := filepath.Join(folder.Home, identityFile); t.Server.CertPath == own {
		if err := s.identity(own, hosts); err != nil {
			return nil, fmt.Errorf("--profile secure: %w", err)
		}
	}
	s.say("requests that change something are taken from %s only (adminAllowedNetworks)", networks)
	return s.lines, nil
}

// identity makes the first key and certificate.
func (s *secured) identity(own string, hosts []string) error {
	text, err := remoting.NewIdentity(hosts, time.Now())
	if err != nil {
		return err
	}
	madeOwn, err := compat.WriteNewFile(own, text, 0o600)
	if err != nil {
		return err
	}
	if text, err = os.ReadFile(own); err != nil {
		return err
	}
	public := filepath.Join(filepath.Dir(own), filepath.Base(certificateFile))
	if _, err := compat.WriteNewFile(public, remoting.Certificates(text), 0o644); err != nil {
		return err
	}
	s.say("certificate %s, %s, signed by itself; key and certificate are in %s: replace it by tls.server.certPath and tls.server.keyPath", public, made(madeOwn), own)
	s.say("clients: -Dtls.enable=true -Dtls.test.mode.enable=false -Dtls.client.authServer=true -Dtls.client.trustCertPath=%s, and an account", public)
	s.say("to do for a server on another machine: copy %s there before its first start", filepath.Dir(own))
	return nil
}

// hostNames are what a certificate of this machine is for; more are addresses that clients are told.
func hostNames(more ...string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil && host != "" {
		names = append([]string{host}, names...)
	}
	for _, name := range more {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
