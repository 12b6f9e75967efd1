package namesrv

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// step is a line of what was said to an official name server; see testdata/README.md.
type step struct {
	Step             string
	Conn             int
	Code, Version    int32
	Form             string
	Ext              map[string]string
	Body, BodyBase64 string
	Oneway, Close    bool
	Answer           *struct {
		Code   int32
		Remark string
		Ext    map[string]string
		Body   string
	}
}

func transcript(t *testing.T, file string) []step {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var steps []step
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, s)
	}
	return steps
}

func (s *step) request(t *testing.T) *protocol.Command {
	c := &protocol.Command{Code: s.Code, Version: s.Version, Body: []byte(s.Body)}
	if s.BodyBase64 != "" {
		var err error
		if c.Body, err = base64.StdEncoding.DecodeString(s.BodyBase64); err != nil {
			t.Fatal(err)
		}
	}
	if s.Form == "BINARY" {
		c.Serialize = protocol.Binary
	}
	if s.Oneway {
		c.Flag = protocol.FlagOneway
	}
	for _, key := range slices.Sorted(maps.Keys(s.Ext)) {
		c.SetField(key, s.Ext[key])
	}
	return c
}

// TestTranscripts sends what an official name server was sent, and demands its answers.
func TestTranscripts(t *testing.T) {
	for _, file := range []string{"transcript", "recorded"} {
		t.Run(file, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			cfg.extra = []compat.KeyValue{{Key: "someUnknownKey", Value: "kept"}}
			s, _ := start(t, cfg)
			peers := make(map[int]*remotingtest.Peer)
			steps := transcript(t, "testdata/"+file+".jsonl")
			for i := range steps {
				st := &steps[i]
				p := peers[st.Conn]
				if p == nil {
					p = remotingtest.Dial(t, s.Addr())
					peers[st.Conn] = p
				}
				if st.Close {
					p.Close()
					delete(peers, st.Conn)
					remotingtest.Eventually(t, "the server sees the end of a connection", func() bool { return s.remote.Connections() == len(peers) })
					continue
				}
				c := st.request(t)
				c.Opaque = int32(i)
				switch {
				case st.Oneway: // the answer to the next request says that this one is done
					p.Send(c)
					p.Ask(&protocol.Command{Code: int32(protocol.GetKVConfig), Opaque: 1 << 30})
				case st.Answer == nil: // the next answer on this connection is not for this request
					p.Send(c)
				default:
					st.compare(t, p.Ask(c))
				}
			}
			if len(steps) < 18 {
				t.Errorf("%d steps", len(steps))
			}
		})
	}
}

func (s *step) compare(t *testing.T, got *protocol.Command) {
	t.Helper()
	want := s.Answer
	if got.Code != want.Code || want.Remark != "*" && got.Remark != want.Remark || want.Remark == "*" && got.Remark == "" {
		t.Errorf("%s: code %d, remark %q; want %d, %q", s.Step, got.Code, got.Remark, want.Code, want.Remark)
	}
	var ext map[string]string
	if got.HasFields {
		ext = make(map[string]string)
		for _, f := range got.Fields {
			ext[f.Key] = f.Value
		}
	}
	if !maps.Equal(ext, want.Ext) || (ext == nil) != (want.Ext == nil) {
		t.Errorf("%s: fields %v, want %v", s.Step, ext, want.Ext)
	}
	if got.Version != protocol.ServerVersion || got.Language != protocol.Java || (got.Serialize == protocol.Binary) != (s.Form == "BINARY") {
		t.Errorf("%s: version %d, language %s, form %d", s.Step, got.Version, got.Language, got.Serialize)
	}
	switch {
	case string(got.Body) == want.Body:
	case s.Code == int32(protocol.GetNamesrvConfig): // we have keys of our own
		for line := range strings.Lines(want.Body) {
			if !strings.Contains("\n"+string(got.Body), "\n"+line) {
				t.Errorf("%s: %q is missing in %s", s.Step, line, got.Body)
			}
		}
	case s.Code == int32(protocol.GetRouteInfoByTopic) && s.Version >= protocol.V4_9_4 && !json.Valid(got.Body):
		t.Errorf("%s: not JSON: %s", s.Step, got.Body)
	default:
		if g, w := s.unordered(t, string(got.Body)), s.unordered(t, want.Body); !reflect.DeepEqual(g, w) {
			t.Errorf("%s: body\n%s, want\n%s", s.Step, got.Body, want.Body)
		}
	}
}

// unordered parses a body and puts its lists, which are sets in Java, into one order. Which broker's address stands in
// the list of system topics is chance.
func (s *step) unordered(t *testing.T, text string) any {
	if text == "" {
		return nil
	}
	standard, err := compat.Standardize([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v in %s", s.Step, err, text)
	}
	var v any
	if err := json.Unmarshal(standard, &v); err != nil {
		t.Fatal(err)
	}
	if m, ok := v.(map[string]any); ok && s.Code == int32(protocol.GetSystemTopicListFromNs) && m["brokerAddr"] != nil {
		m["brokerAddr"] = "any"
	}
	return sortLists(v)
}

func sortLists(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = sortLists(v[i])
		}
		slices.SortFunc(v, func(a, b any) int {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return slices.Compare(x, y)
		})
	case map[string]any:
		for k := range v {
			v[k] = sortLists(v[k])
		}
	}
	return v
}
