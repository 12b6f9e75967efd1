package namesrv

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/protocol/header"
	"rocketd/remoting"
)

// orderTopicConfig is the namespace of the queue order of topics: "broker-a:4;broker-b:4" by topic. Brokers get
// the whole of it with each registration.
const orderTopicConfig = "ORDER_TOPIC_CONFIG"

// kvTable is the KV configuration: texts by namespace and key, persisted in kvConfig.json. It owns its table.
type kvTable struct {
	log   *slog.Logger
	bound bound // maxKvConfigBytes
	mu    struct {
		sync.RWMutex
		bytes int64 // of all texts as JSON
		table map[string]map[string]string
	}
}

// kvFile is the shape of kvConfig.json, which is compact.
type kvFile struct {
	ConfigTable map[string]map[string]string
}

func newKVTable(log *slog.Logger) *kvTable {
	t := &kvTable{log: log}
	t.mu.table = make(map[string]map[string]string)
	return t
}

// load reads the file at path; a missing one is an empty table. The official server goes on with an empty table
// too when it can't read the file, and overwrites it with the next change; that would lose the queue order of
// every topic.
func (t *kvTable) load(files compat.FileSystem, path string) error {
	var f kvFile
	from, err := compat.LoadConfigFile(files, path, t.log, func(b []byte) error {
		f = kvFile{}
		return compat.Unmarshal(b, &f)
	})
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("KV configuration: %w; give the file to the user that the server runs as, or set kvConfigPath to another", err)
	}
	if err != nil {
		return fmt.Errorf("KV configuration: %w; restore or mend %s (kvConfigPath), or move it and its .bak away to start with none (the queue order of ordered topics is in it)", err, path)
	}
	if from == "" {
		return nil
	}
	for namespace, table := range f.ConfigTable {
		if table == nil {
			table = make(map[string]string)
		}
		t.mu.table[namespace] = table
		t.mu.bytes += textSize(namespace)
		for key, value := range table {
			t.mu.bytes += textSize(key) + textSize(value)
		}
	}
	t.log.Info("KV configuration read", "file", from, "namespaces", len(t.mu.table))
	return nil
}

// encode is the text of kvConfig.json.
func (t *kvTable) encode() ([]byte, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return compat.Marshal(kvFile{t.mu.table})
}

func (t *kvTable) get(namespace, key string) (string, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	value, ok := t.mu.table[namespace][key]
	return value, ok
}

// textSize is the bytes of a text as JSON, with what stands around it. Brokers get a whole namespace with each
// registration, and that has to fit a frame.
func textSize(text string) int64 {
	n := len(text) + 4
	for _, c := range []byte(text) {
		if c < ' ' || c == 0x7f || c == '"' || c == '\\' {
			n += 5
		}
	}
	return int64(n)
}

// put sets a value; present false sets Java's null, which is the same as none. It is false when there is no room.
func (t *kvTable) put(namespace, key, value string, present bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	table, more := t.mu.table[namespace], int64(0)
	if table == nil {
		more += textSize(namespace)
	}
	old, known := table[key]
	if known {
		more -= textSize(key) + textSize(old)
	}
	if present {
		more += textSize(key) + textSize(value)
	}
	if !t.bound.allows(t.mu.bytes, more) {
		return false
	}
	t.mu.bytes += more
	if table == nil {
		table = make(map[string]string)
		t.mu.table[strings.Clone(namespace)] = table // the request's would keep its whole header
	}
	if !present {
		delete(table, key)
		return true
	}
	table[strings.Clone(key)] = strings.Clone(value)
	return true
}

// remove removes a value. Its namespace stays, if empty, as in the official server.
func (t *kvTable) remove(namespace, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, known := t.mu.table[namespace][key]; known {
		t.mu.bytes -= textSize(key) + textSize(old)
		delete(t.mu.table[namespace], key)
	}
}

// list returns a namespace as the JSON of a KVTable, nil when there is none.
func (t *kvTable) list(namespace string) []byte {
	t.mu.RLock()
	defer t.mu.RUnlock()
	table, ok := t.mu.table[namespace]
	if !ok {
		return nil
	}
	b, err := compat.Marshal(body.KVTable{Table: table})
	if err != nil { // texts can always be written
		t.log.Error("KV table not written", "namespace", namespace, "error", err)
	}
	return b
}

func (s *Server) putKVConfig(c *remoting.Call, req *header.PutKVConfigRequest) (*protocol.Command, error) {
	cmd := c.Command()
	_, namespace := cmd.Field("namespace")
	_, key := cmd.Field("key")
	if !namespace || !key {
		return nil, protocol.Errorf(protocol.SystemError, "namespace or key is null")
	}
	_, present := cmd.Field("value")
	if !s.kv.put(req.Namespace, req.Key, req.Value, present) {
		return nil, protocol.Errorf(protocol.SystemError, "the KV configuration is as large as maxKvConfigBytes allows")
	}
	s.log.Info("KV configuration put", "namespace", req.Namespace, "key", req.Key, "peer", c.Conn().RemoteAddr())
	s.kvFile.Changed(saved(c))
	return nil, nil
}

// saved answers a request when the file that carries its change is written.
func saved(c *remoting.Call) func(error) {
	return func(err error) {
		if err != nil {
			c.ReplyError(fmt.Errorf("not saved: %w", err))
			return
		}
		c.Reply(c.Success(nil))
	}
}

func (s *Server) getKVConfig(c *remoting.Call, req *header.GetKVConfigRequest) (*protocol.Command, error) {
	value, ok := s.kv.get(req.Namespace, req.Key)
	if !ok {
		remark := "No config item, Namespace: " + null(c, "namespace", req.Namespace) + " Key: " + null(c, "key", req.Key)
		return c.Answer(protocol.QueryNotFound, remark, &header.GetKVConfigResponse{}), nil
	}
	answer := c.Success(&header.GetKVConfigResponse{Value: value})
	if value == "" {
		answer.SetField("value", "")
	}
	return answer, nil
}

func (s *Server) deleteKVConfig(c *remoting.Call, req *header.DeleteKVConfigRequest) (*protocol.Command, error) {
	s.kv.remove(req.Namespace, req.Key)
	s.log.Info("KV configuration deleted", "namespace", req.Namespace, "key", req.Key, "peer", c.Conn().RemoteAddr())
	s.kvFile.Changed(saved(c))
	return nil, nil
}

func (s *Server) getKVList(c *remoting.Call, req *header.GetKVListByNamespaceRequest) (*protocol.Command, error) {
	list := s.kv.list(req.Namespace)
	if list == nil {
		remark := "No config item, Namespace: " + null(c, "namespace", req.Namespace)
		return c.Answer(protocol.QueryNotFound, remark, nil), nil
	}
	answer := c.Success(nil)
	answer.Body = list
	return answer, nil
}
