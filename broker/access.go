package broker

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"

	"rocketd/broker/clients"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/admin"
)

// Access control: what every request has to pass when aclEnable is set, and its administration (50 to 53).

// offText is what 50, 51 and 53 say when aclEnable is not set: the official broker falls over its missing validator, and
// tools show the text of Java 17.
func offText(method string) string {
	return "Cannot invoke \"org.apache.rocketmq.acl.AccessValidator." + method + "\" because \"accessValidator\" is null"
}

// openAcl reads the ACL files, if anybody is to be checked by them, and makes the admin surface.
func (b *Broker) openAcl(cfg *Config) (err error) {
	if cfg.AclEnable || cfg.AdminAccountsOnly {
		if b.accounts, err = acl.Open(acl.Options{Folder: cfg.AclFolder(), Clock: b.clock, Log: b.log}); err != nil {
			return err
		}
	}
	if cfg.AclEnable {
		b.acl = b.accounts
	}
	c, err := b.readCredentials(cfg)
	if err != nil {
		return err
	}
	b.credentials.Store(c)
	b.surface, err = admin.New(cfg.SurfaceConfig, admin.Options{Server: "broker " + cfg.BrokerName, Accounts: b.accounts, Clock: b.clock, Log: b.log})
	return err
}

// readCredentials reads the account that is to sign what goes to name servers; nil: there is none.
func (b *Broker) readCredentials(cfg *Config) (*acl.Credentials, error) {
	if cfg.NamesrvAccountFile == "" {
		return nil, nil
	}
	c, err := acl.ReadCredentials(cfg.NamesrvAccountFile)
	if err != nil {
		return nil, fmt.Errorf("namesrvAccountFile: %w", err)
	}
	acl.WarnModes(cfg.NamesrvAccountFile, b.log)
	return c, nil
}

// signed is a request to a name server, signed if there is an account for it.
func (b *Broker) signed(req *protocol.Command) *protocol.Command {
	if c := b.credentials.Load(); c != nil {
		c.Sign(req)
	}
	return req
}

// AclFolder is where the ACL files of the broker lie.
func (c *Config) AclFolder() acl.Folder {
	return acl.Folder{Home: c.RocketmqHome, File: c.AclPlainFile}
}

// permit refuses what the rules do not let in. It runs before all routes, as PlainAccessValidator of 4.9.8.
func (b *Broker) permit(c *remoting.Call) error {
	err := b.acl.Check(c.Command(), c.Conn().RemoteAddr().Addr())
	if err != nil {
		b.denied(c, err)
	}
	return err
}

// mayRead refuses to show a message of a topic that the sender of the request may not subscribe. The official broker
// shows any message by its offset, and sends any back to any group (compat). One that waits as a delayed or half message
// counts as one of its own topic.
func (b *Broker) mayRead(c *remoting.Call, m *message.Message) error {
	return b.may(c, message.OwnTopic(m.Topic, m.Properties), acl.Sub)
}

// mayDispatch refuses a send or reply that enters a queue, by its INNER_MULTI_DISPATCH, of a topic to which its sender may not
// send. The official broker looks at its topic alone (compat).
func (b *Broker) mayDispatch(cfg *Config, c *remoting.Call, properties string) error {
	if b.acl == nil || !cfg.EnableMultiDispatch {
		return nil
	}
	names, ok := message.Property(properties, message.PropertyInnerMultiDispatch)
	for ok && names != "" {
		var name string
		if name, names, _ = strings.Cut(names, ","); name == "" {
			continue
		}
		if err := b.may(c, name, acl.Pub); err != nil {
			return err
		}
	}
	return nil
}

// mayCommit tells whether a member of a producer group may hear of its half messages of a topic, and end them. Anybody
// can become a member: officially he gets what others have sent (compat).
func (b *Broker) mayCommit(m *clients.Client, topic string) bool {
	return b.acl == nil || b.acl.Permits(m.AccessKey, m.Conn.RemoteAddr().Addr(), topic, acl.Pub)
}

// account is the account of a request, "" without access control.
func (b *Broker) account(c *remoting.Call) string {
	if b.acl == nil {
		return ""
	}
	return b.acl.Account(c.Command())
}

// may refuses what the sender of a request may not do with a topic that only the request's handler knows.
func (b *Broker) may(c *remoting.Call, topic string, need acl.Permission) error {
	if b.acl == nil {
		return nil
	}
	err := b.acl.Authorize(c.Command(), c.Conn().RemoteAddr().Addr(), topic, need)
	if err != nil {
		b.denied(c, err)
	}
	return err
}

// deniedKinds is how many kinds of refusals of one address are told apart: a peer that makes up keys can't fill the log.
const deniedKinds = 64

// denied tells the log of a refusal, once a minute for each code, account and reason of an address: several programs of one machine may have
// faults of their own.
func (b *Broker) denied(c *remoting.Call, err error) {
	key, _ := c.Command().Field("AccessKey")
	b.tellDenied(c.Conn().RemoteAddr(), protocol.RequestCode(c.Command().Code), key, err)
}

func (b *Broker) tellDenied(from netip.AddrPort, code protocol.RequestCode, key string, err error) {
	kind := fnv.New32a()
	fmt.Fprint(kind, code, key, err)
	if !b.notices.due(fmt.Sprint("acl ", from.Addr(), kind.Sum32()%deniedKinds), b.clock()) {
		return
	}
	b.log.Warn("request refused by access control", "code", code.String(), "accessKey", key, "client", from, "error", err)
}

// split is UtilAll#split of 4.9.8 with commas: nil when the field is absent, empty parts at the end do not count.
func split(c *remoting.Call, key string) []string {
	text, ok := c.Command().Field(key)
	if !ok {
		return nil
	}
	if text == "" {
		return []string{""}
	}
	parts := strings.Split(strings.TrimRight(text, ","), ",")
	if len(parts) == 1 && parts[0] == "" {
		return []string{}
	}
	return parts
}

// orNull is a field as Java writes it into a text.
func orNull(c *remoting.Call, key string) string {
	if text, ok := c.Command().Field(key); ok {
		return text
	}
	return "null"
}

// updateAclConfig (50) changes or adds an account. As AdminBrokerProcessor#updateAndCreateAccessConfig of 4.9.8.
func (b *Broker) updateAclConfig(c *remoting.Call, req *header.CreateAccessConfigRequest) (*protocol.Command, error) {
	if b.accounts == nil {
		return nil, protocol.Errorf(protocol.UpdateAndCreateAclConfigFailed, "%s", offText("updateAccessConfig(org.apache.rocketmq.common.PlainAccessConfig)"))
	}
	change := acl.Change{
		AccessKey: req.AccessKey, SecretKey: req.SecretKey, Admin: req.Admin,
		DefaultTopicPerm: req.DefaultTopicPerm, DefaultGroupPerm: req.DefaultGroupPerm,
		TopicPerms: split(c, "topicPerms"), GroupPerms: split(c, "groupPerms"),
	}
	if _, ok := c.Command().Field("whiteRemoteAddress"); ok {
		change.WhiteRemoteAddress = &req.WhiteRemoteAddress
	}
	if err := b.accounts.Update(change); err != nil {
		return nil, protocol.Errorf(protocol.UpdateAndCreateAclConfigFailed, "%s", err.Error())
	}
	return c.Success(nil), nil
}

// deleteAclConfig (51) deletes an account. As AdminBrokerProcessor#deleteAccessConfig of 4.9.8.
func (b *Broker) deleteAclConfig(c *remoting.Call, req *header.DeleteAccessConfigRequest) (*protocol.Command, error) {
	if b.accounts == nil {
		return nil, protocol.Errorf(protocol.DeleteAclConfigFailed, "%s", offText("deleteAccessConfig(String)"))
	}
	switch found, err := b.accounts.Delete(req.AccessKey); {
	case err != nil:
		return nil, protocol.Errorf(protocol.DeleteAclConfigFailed, "%s", err.Error())
	case !found:
		return nil, protocol.Errorf(protocol.DeleteAclConfigFailed,
			"The accesskey[%s] corresponding to accessConfig has been deleted failed.", orNull(c, "accessKey"))
	}
	return c.Success(nil), nil
}

// updateGlobalWhiteAddrs (53) replaces the global white list of one ACL file. The official broker writes to every file
// whose name begins with its home's; here it must be one that the rules are read from (compat). As
// AdminBrokerProcessor#updateGlobalWhiteAddrsConfig of 4.9.8.
func (b *Broker) updateGlobalWhiteAddrs(c *remoting.Call, req *header.UpdateGlobalWhiteAddrsConfigRequest) (*protocol.Command, error) {
	if b.accounts == nil {
		return nil, protocol.Errorf(protocol.UpdateGlobalWhiteAddrsConfigFailed, "%s", offText("updateGlobalWhiteAddrsConfig(java.util.List, String)"))
	}
	switch found, err := b.accounts.SetGlobal(split(c, "globalWhiteAddrs"), req.AclFileFullPath); {
	case err != nil:
		return nil, protocol.Errorf(protocol.UpdateGlobalWhiteAddrsConfigFailed, "%s", err.Error())
	case !found:
		return nil, protocol.Errorf(protocol.UpdateGlobalWhiteAddrsConfigFailed,
			"The globalWhiteAddresses[%s] has been updated failed.", orNull(c, "globalWhiteAddrs"))
	}
	return c.Success(nil), nil
}

// aclVersion (52) tells the versions of the ACL files. Without access control there is no answer at all, as in 4.9.8.
func (b *Broker) aclVersion(c *remoting.Call, _ *header.Empty) (*protocol.Command, error) {
	if b.accounts == nil {
		c.Drop()
		return nil, nil
	}
	files, standard := b.accounts.Versions()
	all := make(map[string]body.DataVersion, len(files))
	for _, f := range files {
		all[f.Path] = body.DataVersion{Counter: f.Counter, Timestamp: f.Timestamp}
	}
	allText, err := compat.Marshal(all)
	if err != nil {
		return nil, err
	}
	text, err := compat.Marshal(&body.DataVersion{Counter: standard.Counter, Timestamp: standard.Timestamp})
	if err != nil {
		return nil, err
	}
	cfg := b.config()
	return c.Success(&header.GetBrokerAclConfigResponse{
		Version: string(text), AllAclFileVersion: string(allText),
		BrokerName: cfg.BrokerName, BrokerAddr: b.Addr(), ClusterName: cfg.BrokerClusterName,
	}), nil
}
