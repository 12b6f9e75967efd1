package target

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// NameServer is one name server process.
type NameServer struct {
	// Addr is "127.0.0.1:port".
	Addr string
	*process
}

// Broker is one broker process.
type Broker struct {
	Name, Cluster string
	// Addr is "127.0.0.1:port", as the broker advertises it unless its brokerIP1 says otherwise. The fast ("VIP")
	// port is port-2.
	Addr string
	// StoreDir is storePathRootDir; ConfFile the broker.conf that the broker was started with.
	StoreDir, ConfFile string
	// ACLFile is the plain_acl.yml of a broker with access control.
	ACLFile string
	*process

	conf map[string]string // what ConfFile holds
}

func (t *Target) newNameServer(name string, conf map[string]string) (*NameServer, error) {
	ports, err := takePorts()
	if err != nil {
		return nil, err
	}
	t.ports = append(t.ports, ports)
	dir := filepath.Join(t.dir, name)
	port := strconv.Itoa(ports.listenPort())
	all := map[string]string{
		"listenPort":      port,
		"kvConfigPath":    filepath.Join(dir, "kvConfig.json"),
		"configStorePath": filepath.Join(dir, "namesrv.properties"),
	}
	maps.Copy(all, conf)
	file := filepath.Join(dir, "namesrv.conf")
	if err := writeProperties(file, all); err != nil {
		return nil, err
	}
	p := &process{name: name, dir: dir, kind: t.Kind, role: "namesrv", args: []string{"-c", file}, properties: t.properties}
	n := &NameServer{Addr: "127.0.0.1:" + port, process: p}
	p.ready = func() error { return answersFrames(n.Addr, t.secure) }
	return n, nil
}

func (t *Target) newBroker(id string, o BrokerOptions) (*Broker, error) {
	ports, err := takePorts()
	if err != nil {
		return nil, err
	}
	t.ports = append(t.ports, ports)
	dir := filepath.Join(t.dir, id)
	store := o.StoreDir
	if store == "" {
		store = filepath.Join(dir, "store")
	}
	port := strconv.Itoa(ports.listenPort())
	all := map[string]string{
		"brokerName":         o.Name,
		"brokerClusterName":  o.Cluster,
		"brokerId":           "0",
		"listenPort":         port,
		"namesrvAddr":        t.Namesrv,
		"brokerIP1":          "127.0.0.1",
		"brokerIP2":          "127.0.0.1",
		"storePathRootDir":   store,
		"storePathCommitLog": filepath.Join(store, "commitlog"),
		// Small files: a fresh store costs no disk, and a case may fill one.
		"mappedFileSizeCommitLog": "67108864",
		"maxHashSlotNum":          "50000",
		"maxIndexNum":             "200000",
		// The developer's disk may be nearly full; that is no matter of the cases.
		"diskMaxUsedSpaceRatio": "95",
		// A machine busy with tests is no reason to refuse sends (the default is 200 ms).
		"waitTimeMillsInSendQueue": "5000",
	}
	acl := ""
	if o.ACL != "" {
		all["aclEnable"] = "true"
		acl = filepath.Join(dir, "conf", "plain_acl.yml") // dir is the broker's ROCKETMQ_HOME
		if err := os.MkdirAll(filepath.Dir(acl), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(acl, []byte(o.ACL), 0o600); err != nil {
			return nil, err
		}
	}
	maps.Copy(all, o.Conf)
	file := filepath.Join(dir, "broker.conf")
	if err := writeProperties(file, all); err != nil {
		return nil, err
	}
	for name, text := range o.Files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	kind := o.Kind
	if kind == "" {
		kind = t.Kind
	}
	p := &process{
		name: id, dir: dir, kind: kind, role: "broker",
		args: []string{"-c", file, "-n", t.Namesrv}, jvm: o.JVM, properties: t.properties,
	}
	b := &Broker{Name: o.Name, Cluster: o.Cluster, Addr: "127.0.0.1:" + port, StoreDir: store, ConfFile: file, ACLFile: acl, process: p, conf: all}
	p.ready = func() error {
		if err := answersFrames(b.Addr, t.secure); err != nil {
			return err
		}
		for _, n := range t.NameServers {
			if !n.running() {
				continue
			}
			if err := routed(n.Addr, t.secure, b.Name, b.conf["brokerIP1"], port); err != nil {
				return err
			}
		}
		return nil
	}
	return b, nil
}

// RunAs chooses the software that the next Start runs, on the same ports, store and configuration.
func (b *Broker) RunAs(k Kind) { b.kind = k }

// Configure changes keys of the broker's configuration file, which the next Start reads.
func (b *Broker) Configure(conf map[string]string) error {
	maps.Copy(b.conf, conf)
	return writeProperties(b.ConfFile, b.conf)
}

// Port is the broker's listen port.
func (b *Broker) Port() int {
	_, p, _ := strings.Cut(b.Addr, ":")
	n, err := strconv.Atoi(p)
	if err != nil {
		panic(fmt.Sprintf("broker address %q", b.Addr)) // made by newBroker
	}
	return n
}

// writeProperties writes a Java properties file, sorted by key. Only the backslash needs an escape in what a
// test configures.
func writeProperties(file string, conf map[string]string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(conf)) {
		fmt.Fprintf(&b, "%s=%s\n", k, strings.ReplaceAll(conf[k], `\`, `\\`))
	}
	return os.WriteFile(file, []byte(b.String()), 0o644)
}
