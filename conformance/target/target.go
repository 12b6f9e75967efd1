// Package target starts the server that the conformance cases are run against: rocketd, built from this
// tree, or the official RocketMQ 4.9.7 (5.3.3 for what 4.9 does not have), fetched from Maven Central. Both get the same configuration keys, so
// a case cannot know which of the two it speaks to; a case that fails against the official server is wrong.
//
//	CONFORMANCE_TARGET   rocketd (default) or official
//	CONFORMANCE_CACHE    folder for the fetched jars and compiled cases (default: <user cache>/rocketd-conformance)
//	CONFORMANCE_PORTS    "first-last", the ports that servers may use (default 21000-22999)
//	CONFORMANCE_KEEP     1 = leave the folders of stopped targets (configuration, log, store) in place
//	CONFORMANCE_ROCKETD  a ready rocketd binary to start, instead of building ./cmd/rocketd
//
// Every server runs in a process group of its own and dies with the test process.
package target

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Kind says which software a target runs.
type Kind string

// The kinds of target.
const (
	Rocketd  Kind = "rocketd"
	Official Kind = "official"
	// Official5 is the official 5.3.3, for what 4.9 does not have. No case is run against it by CONFORMANCE_TARGET alone:
	// see Selected5.
	Official5 Kind = "official5"
)

func (k Kind) official() bool { return k == Official || k == Official5 }

// Selected is the kind that CONFORMANCE_TARGET names; rocketd when it is empty.
func Selected() (Kind, error) {
	switch k := os.Getenv("CONFORMANCE_TARGET"); k {
	case "", string(Rocketd):
		return Rocketd, nil
	case string(Official):
		return Official, nil
	default:
		return "", fmt.Errorf("CONFORMANCE_TARGET is %q, want %q or %q", k, Rocketd, Official)
	}
}

// Selected5 is Selected for cases about what only 5.x has: the official server is then 5.3.3.
func Selected5() (Kind, error) {
	k, err := Selected()
	if k == Official {
		k = Official5
	}
	return k, err
}

// Options describe a cluster. The zero value is one name server and one broker "broker-a" in "DefaultCluster".
type Options struct {
	// Kind is what name servers and brokers run as; "" = Selected.
	Kind Kind
	// Brokers to start, in this order; nil = one with the defaults.
	Brokers []BrokerOptions
	// NameServers is how many name servers run; 0 = 1. Every broker registers with all.
	NameServers int
	// NamesrvConf holds keys of the name servers' properties file.
	NamesrvConf map[string]string
	// Properties are settings of TLS that every server gets, like "-Dtls.server.mode=enforcing".
	Properties []string
	// Profile is rocketd's --profile of every server; the official ones have none. "" = none.
	Profile string
	// Secure is how the servers are asked whether they serve; nil = without TLS.
	Secure *tls.Config
}

// BrokerOptions describe one broker.
type BrokerOptions struct {
	// Kind is what this broker runs as; "" = as the cluster.
	Kind Kind
	// Name and Cluster default to "broker-a", "broker-b" … and "DefaultCluster".
	Name, Cluster string
	// Conf holds broker.conf keys, the same for both kinds; they override the harness' own (broker.go).
	Conf map[string]string
	// ACL is the text of the broker's plain_acl.yml; with it every request must be signed. "" = no access control.
	ACL string
	// JVM holds more flags for the official broker's JVM.
	JVM []string
	// StoreDir is storePathRootDir; "" = a fresh folder, removed with the target.
	StoreDir string
	// Files are what lies below ROCKETMQ_HOME at the start, by paths there.
	Files map[string]string
}

// Target is a running cluster.
type Target struct {
	Kind Kind
	// Namesrv is the name server list as clients take it: "127.0.0.1:21003;127.0.0.1:21007".
	Namesrv string
	// NameServers and Brokers are the single processes, in the order of Options.
	NameServers []*NameServer
	Brokers     []*Broker

	dir   string
	ports []*portBlock

	properties []string
	secure     *tls.Config
}

// Start starts a cluster and returns when every broker is routed by every name server. It is stopped when the
// test ends; if the test failed, the tails of the servers' logs are printed.
func Start(tb testing.TB, o Options) *Target {
	tb.Helper()
	t, err := StartMain(o)
	if err != nil {
		tb.Fatalf("start target: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Log(t.LogTails(60))
		}
		if err := t.Close(); err != nil {
			tb.Errorf("stop target: %v", err)
		}
	})
	return t
}

// StartMain is Start for a TestMain, which must call Close itself.
func StartMain(o Options) (_ *Target, err error) {
	kind := o.Kind
	if kind == "" {
		if kind, err = Selected(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("", "conformance-"+string(kind)+"-")
	if err != nil {
		return nil, err
	}
	t := &Target{Kind: kind, dir: dir, properties: o.Properties, secure: o.Secure}
	if o.Profile != "" && kind == Rocketd {
		t.properties = append(slices.Clone(o.Properties), "--profile", o.Profile)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, t.LogTails(40))
			_ = t.Close()
		}
	}()
	if err := t.startNameServers(o); err != nil {
		return nil, err
	}
	if err := t.startBrokers(o); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Target) startNameServers(o Options) error {
	var addrs []string
	for i := range max(o.NameServers, 1) {
		n, err := t.newNameServer(fmt.Sprintf("namesrv-%d", i), o.NamesrvConf)
		if err != nil {
			return err
		}
		t.NameServers = append(t.NameServers, n)
		addrs = append(addrs, n.Addr)
		if err := n.launch(); err != nil {
			return err
		}
	}
	t.Namesrv = strings.Join(addrs, ";")
	for _, n := range t.NameServers {
		if err := n.waitReady(); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) startBrokers(o Options) error {
	brokers := o.Brokers
	if brokers == nil {
		brokers = []BrokerOptions{{}}
	}
	for i, bo := range brokers {
		if bo.Name == "" {
			bo.Name = "broker-" + string(rune('a'+i))
		}
		if bo.Cluster == "" {
			bo.Cluster = "DefaultCluster"
		}
		b, err := t.newBroker(fmt.Sprintf("%s-%d", bo.Name, i), bo)
		if err != nil {
			return err
		}
		t.Brokers = append(t.Brokers, b)
		if err := b.launch(); err != nil {
			return err
		}
	}
	for _, b := range t.Brokers {
		if err := b.waitReady(); err != nil {
			return err
		}
	}
	return nil
}

// Dir is the target's own folder, for files that live as long as it.
func (t *Target) Dir() string { return t.dir }

// Close stops all servers and removes the target's folder. rocketd is asked to end (SIGTERM) and must exit
// with 0; the official JVMs, which take seconds to say goodbye, are killed.
func (t *Target) Close() error {
	var errs []error
	for _, b := range t.Brokers {
		errs = append(errs, t.end(b.process))
	}
	for _, n := range t.NameServers {
		errs = append(errs, t.end(n.process))
	}
	for _, p := range t.ports {
		p.release()
	}
	if os.Getenv("CONFORMANCE_KEEP") == "" {
		errs = append(errs, os.RemoveAll(t.dir))
	}
	return errors.Join(errs...)
}

func (t *Target) end(p *process) error {
	if p.kind.official() {
		return p.kill()
	}
	return p.stop()
}

// LogTails is the last lines of every server's log, for a failure report.
func (t *Target) LogTails(lines int) string {
	var b strings.Builder
	for _, n := range t.NameServers {
		n.tail(&b, lines)
	}
	for _, br := range t.Brokers {
		br.tail(&b, lines)
	}
	if os.Getenv("CONFORMANCE_KEEP") != "" {
		fmt.Fprintf(&b, "(all of it is in %s)\n", filepath.Clean(t.dir))
	}
	return b.String()
}
