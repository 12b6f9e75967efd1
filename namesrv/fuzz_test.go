package namesrv

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/remoting"
	"rocketd/remoting/remotingtest"
)

// FuzzRequests sends any ext fields and any body by every code of a name server, in either form: no handler panics, and
// the next request is served.
func FuzzRequests(f *testing.F) {
	f.Add(uint16(protocol.RegisterBroker), false, `{"brokerId":"0","bodyCrc32":"0","clusterName":"OracleCluster","brokerAddr":"127.0.0.2:32011","haServerAddr":"127.0.0.2:32012","compressed":"false","brokerName":"oracle-a"}`,
		registrationOf(f, 1, "TopicA", "TopicB"))
	f.Add(uint16(protocol.QueryDataVersion), true, `{"brokerId":"0","clusterName":"OracleCluster","brokerAddr":"127.0.0.2:32011","brokerName":"oracle-a"}`, []byte(`{"counter":1,"timestamp":1}`))
	f.Add(uint16(protocol.PutKVConfig), false, `{"namespace":"ORDER_TOPIC_CONFIG","key":"T","value":"oracle-a:4"}`, []byte{})
	f.Add(uint16(protocol.GetRouteInfoByTopic), false, `{"topic":"TopicA","acceptStandardJsonOnly":"true"}`, []byte{})
	f.Add(uint16(protocol.UnregisterBroker), false, `{"brokerId":"0","clusterName":"OracleCluster","brokerAddr":"127.0.0.2:32011","brokerName":"oracle-a"}`, []byte{})
	f.Add(uint16(protocol.GetTopicsByCluster), true, `{"cluster":"OracleCluster"}`, []byte{})
	f.Add(uint16(protocol.UpdateNamesrvConfig), false, `{}`, []byte("orderMessageEnable=true\nsomeKey=\\u00e4"))

	m := remoting.NewMux(nil)
	(&Server{}).handle(m)
	codes := m.Codes()
	s, _ := start(f, testConfig(f.TempDir()))
	f.Fuzz(func(t *testing.T, code uint16, binary bool, fields string, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		req := protocol.NewRequest(protocol.RequestCode(code), nil, body)
		if m.Plans()[protocol.RequestCode(code)] == nil {
			req.Code = int32(codes[int(code)%len(codes)])
		}
		var ext map[string]string
		if json.Unmarshal([]byte(fields), &ext) != nil {
			ext = map[string]string{"topic": fields, "brokerName": fields, "brokerAddr": fields, "clusterName": fields}
		}
		for k, v := range ext {
			if k != "" && len(k)+len(v) < 1<<14 {
				req.SetField(k, v)
			}
		}
		if binary {
			req.Serialize = protocol.Binary
		}
		peer := remotingtest.Dial(t, s.Addr())
		defer peer.Close()
		req.Opaque, req.Version = 1, protocol.ServerVersion
		peer.Send(req)
		ping := protocol.NewRequest(protocol.GetRouteInfoByTopic, &header.GetRouteInfoRequest{Topic: "none"}, nil)
		ping.Opaque = 2
		peer.Send(ping)
		for {
			a := peer.Receive()
			if a.Opaque == 2 {
				break
			}
			if a.Opaque != 1 || !a.IsResponse() {
				t.Fatalf("not an answer: %+v", a)
			}
		}
		if n := s.remote.Stats().Panics; n > 0 {
			t.Fatalf("code %d: a handler panicked", req.Code)
		}
	})
}

// FuzzConfig reads any text as the properties file of a name server: it ends in a configuration, which shows itself as
// text that is read as the same, or in an error that names the file.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("rocketmqHome=/opt/rocketmq\nkvConfigPath=/x/kvConfig.json\norderMessageEnable=true\nlistenPort=9876\n"))
	f.Add([]byte("someKey = \\u00e4\\\n  b\n# comment\nserverChannelMaxIdleTimeSeconds:120\nclusterTest = FALSE\n"))
	f.Add([]byte("\xba\n\x90"))
	f.Add([]byte("listenPort=-1\nmaxRouteBytes=1e9\ntls.server.mode=enforcing\n=\n:\n\\"))
	dir := f.TempDir()
	read := func(t *testing.T, text []byte) (Config, error) {
		path := filepath.Join(dir, "namesrv.properties")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return ReadConfig(path, DefaultConfig("/home/x"))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, err := read(t, text)
		if err != nil {
			if !strings.Contains(err.Error(), "namesrv.properties") {
				t.Fatalf("an error that does not name the file: %v", err)
			}
			return
		}
		_ = cfg.Validate() // any error, no panic
		if !utf8.Valid(text) {
			return // texts that differ are shown alike
		}
		again, err := read(t, cfg.Text())
		if err != nil {
			t.Fatalf("what %q became can't be read again: %v", text, err)
		}
		if !bytes.Equal(cfg.Text(), again.Text()) {
			t.Fatalf("%q shows itself as %q, and that as %q", text, cfg.Text(), again.Text())
		}
	})
}
