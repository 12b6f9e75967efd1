package broker

import (
	"context"
	"fmt"
	"hash/crc32"
	"time"

	"rocketd/broker/topics"
	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
)

// registerFull sends every topic. With forceRegister=false a name server is first asked whether it has this data
// version already; the question alone keeps the broker alive there.
func (r *registrar) registerFull(n *nameServer, first bool) error {
	cfg := r.b.config()
	n.mu.Lock()
	n.mu.full, n.mu.topics = false, nil // what changes from here on is sent again
	n.mu.Unlock()
	all, version := r.b.topics.All()
	if !first && !cfg.ForceRegister {
		if needed, err := r.needed(n.addr, version); err != nil || !needed {
			return err
		}
	}
	kv, err := r.register(n.addr, all, version, false)
	if err != nil {
		return err
	}
	if kv != nil {
		n.mu.Lock()
		n.mu.order = kv.Table
		n.mu.Unlock()
		r.applyOrder()
	}
	return nil
}

// registerChanged sends the topics that changed, oneway when nobody waits for it.
func (r *registrar) registerChanged(n *nameServer, oneway bool) error {
	version := r.b.topics.Version() // before the topics are taken: see changed
	n.mu.Lock()
	changed := make([]*topics.Config, 0, len(n.mu.topics))
	for _, c := range n.mu.topics {
		changed = append(changed, c)
	}
	n.mu.topics = nil
	n.mu.Unlock()
	_, err := r.register(n.addr, changed, version, oneway)
	return err
}

// compressAbove is the size (bytes) of a registration from which on it is compressed even when compressedRegister
// is off: name servers close connections that bring frames of more than 16 MiB. The compressed form lacks the order
// flag and topicSysFlag, of which a name server uses the latter only, for lists of unit topics.
const compressAbove = 8 << 20

// maxRegistration is what a name server takes, official ones too: a frame, less its header.
const maxRegistration = protocol.MaxFrame - 4<<10

// register sends one REGISTER_BROKER and returns the order table of the answer, nil when there is none.
func (r *registrar) register(addr string, configs []*topics.Config, version body.DataVersion, oneway bool) (*body.KVTable, error) {
	cfg := r.b.config()
	compressed := cfg.CompressedRegister
	data, err := encodeRegistration(configs, version, cfg.BrokerPermission, compressed)
	if err == nil && len(data) > r.compressAbove && !compressed {
		compressed = true
		data, err = encodeRegistration(configs, version, cfg.BrokerPermission, compressed)
	}
	if err == nil && len(data) > r.most {
		err = fmt.Errorf("the registration of %d topics has %d bytes, compressed, and a name server closes connections that bring more than %d: delete topics, or spread them over more brokers",
			len(configs), len(data), r.most)
	}
	if err != nil {
		return nil, err
	}
	req := protocol.NewRequest(protocol.RegisterBroker, &header.RegisterBrokerRequest{
		BrokerName:   cfg.BrokerName,
		BrokerAddr:   r.b.Addr(),
		ClusterName:  cfg.BrokerClusterName,
		HaServerAddr: r.b.haAddr(),
		BrokerId:     cfg.BrokerId,
		Compressed:   compressed,
		BodyCrc32:    protocol.Some(int32(crc32.ChecksumIEEE(data) & 0x7fffffff)),
	}, data)
	ctx, cancel := context.WithTimeout(r.ctx, r.timeout())
	defer cancel()
	if oneway {
		return nil, r.b.client.Oneway(ctx, addr, r.b.signed(req))
	}
	resp, err := r.b.client.Call(ctx, addr, r.b.signed(req), r.timeout())
	if err != nil {
		return nil, err
	}
	if resp.Code != int32(protocol.Success) {
		return nil, protocol.Errorf(protocol.ResponseCode(resp.Code), "%s", resp.Remark)
	}
	if len(resp.Body) == 0 {
		return nil, nil
	}
	kv := new(body.KVTable)
	if err := compat.Unmarshal(resp.Body, kv); err != nil {
		return nil, fmt.Errorf("order table of the answer: %w", err)
	}
	return kv, nil
}

func (r *registrar) timeout() time.Duration {
	return compat.Millis(max(1, r.b.config().RegisterBrokerTimeoutMills))
}

// needed asks a name server by QUERY_DATA_VERSION whether it wants a registration.
func (r *registrar) needed(addr string, version body.DataVersion) (bool, error) {
	cfg := r.b.config()
	data, err := compat.Marshal(&version)
	if err != nil {
		return false, err
	}
	req := protocol.NewRequest(protocol.QueryDataVersion, &header.QueryDataVersionRequest{
		BrokerName: cfg.BrokerName, BrokerAddr: r.b.Addr(), ClusterName: cfg.BrokerClusterName, BrokerId: cfg.BrokerId,
	}, data)
	resp, err := r.b.client.Call(r.ctx, addr, r.b.signed(req), r.timeout())
	if err != nil {
		return false, err
	}
	if resp.Code != int32(protocol.Success) {
		return true, nil // it does not know the question
	}
	if changed, ok := resp.Field("changed"); !ok || changed != "false" {
		return true, nil
	}
	var theirs body.DataVersion
	return len(resp.Body) > 0 && (compat.Unmarshal(resp.Body, &theirs) != nil || theirs != version), nil
}

// unregister sends UNREGISTER_BROKER.
func (r *registrar) unregister(ctx context.Context, addr string) error {
	cfg := r.b.config()
	req := protocol.NewRequest(protocol.UnregisterBroker, &header.UnRegisterBrokerRequest{
		BrokerName: cfg.BrokerName, BrokerAddr: r.b.Addr(), ClusterName: cfg.BrokerClusterName, BrokerId: cfg.BrokerId,
	}, nil)
	resp, err := r.b.client.Call(ctx, addr, r.b.signed(req), 3*time.Second)
	if err == nil && resp.Code != int32(protocol.Success) {
		err = protocol.Errorf(protocol.ResponseCode(resp.Code), "%s", resp.Remark)
	}
	return err
}

// applyOrder sets the topics' order flags from the table of the first name server that has one. The official
// broker takes whichever answers first, so its flags flicker when name servers disagree.
func (r *registrar) applyOrder() {
	for _, n := range r.servers() {
		n.mu.Lock()
		order := n.mu.order
		n.mu.Unlock()
		if order == nil {
			continue
		}
		if r.b.topics.SetOrder(order) {
			r.b.topics.Saved(nil)
		}
		return
	}
}

// encodeRegistration makes the body of REGISTER_BROKER. A broker permission that lacks reading or writing
// replaces the topics' own.
func encodeRegistration(configs []*topics.Config, version body.DataVersion, perm int32, compressed bool) ([]byte, error) {
	limited := !topics.Readable(perm) || !topics.Writeable(perm)
	table := make(map[string]*topics.Config, len(configs))
	for _, c := range configs {
		if limited {
			c = &topics.Config{
				TopicName: c.TopicName, ReadQueueNums: c.ReadQueueNums, WriteQueueNums: c.WriteQueueNums,
				Perm: perm, TopicFilterType: topics.SingleTag,
			}
		}
		table[c.TopicName] = c
	}
	return body.EncodeRegister(&body.RegisterBrokerBody{
		FilterServerList:            []string{},
		TopicConfigSerializeWrapper: body.TopicConfigSerializeWrapper{DataVersion: version, TopicConfigTable: table},
	}, compressed)
}
