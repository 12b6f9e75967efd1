package namesrv

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rocketd/protocol"
	"rocketd/remoting/remotingtest"
)

// files are the texts of all files below a folder.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTraversal: whatever names requests have, a name server writes its KV file and its configuration file, and nothing else.
func TestTraversal(t *testing.T) {
	base := t.TempDir()
	dir, keep := filepath.Join(base, "a", "b"), filepath.Join(base, "keep")
	for _, err := range []error{os.MkdirAll(dir, 0o755), os.WriteFile(keep, []byte("stays"), 0o600), os.WriteFile(filepath.Join(dir, "own.conf"), []byte("vendorKey=7\n"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := ReadConfig(filepath.Join(dir, "own.conf"), testConfig(dir))
	if err != nil {
		t.Fatal(err)
	}
	s, stop := start(t, cfg)
	peer := remotingtest.Dial(t, s.Addr())
	opaque, answers := int32(0), map[int32]int{}
	ask := func(cmd *protocol.Command) *protocol.Command {
		opaque++
		cmd.Opaque = opaque
		a := peer.Ask(cmd)
		answers[a.Code]++
		return a
	}
	for _, name := range []string{
		"../hostile", "..", ".", "../../keep", base + "/hostile", keep, `..\..\hostile`, "hostile\x00/..", "\x00", "%2e%2e%2fhostile", "file://" + base + "/hostile",
		strings.Repeat("h", 300), strings.Repeat("../", 3000) + "hostile",
	} {
		for _, code := range slices.Sorted(maps.Keys(Headers())) {
			fields := Headers()[code].Fields()
			for _, hostile := range fields {
				cmd := protocol.NewRequest(code, nil, nil)
				for _, f := range fields {
					value := "usual"
					switch {
					case f.Number:
						value = "0"
					case f.Key == hostile.Key:
						value = name
					}
					cmd.SetField(f.Key, value)
				}
				ask(cmd)
			}
		}
		value := strings.NewReplacer(`\`, `\\`, "\x00", `\u0000`).Replace(name)
		for _, key := range []string{"kvConfigPath", "configStorePath", "rocketmqHome", "aclPlainFile", "tls.config.file", "tls.server.keyPath", "configBlackList"} {
			if a := ask(protocol.NewRequest(protocol.UpdateNamesrvConfig, nil, []byte(key+"="+value+"\n"))); a.Code != int32(protocol.NoPermission) {
				t.Errorf("%s=%.60q: code %d, %q", key, name, a.Code, a.Remark)
			}
		}
		if a := ask(protocol.NewRequest(protocol.UpdateNamesrvConfig, nil, []byte("vendorKey="+value+"\n"))); a.Code != 0 {
			t.Errorf("vendorKey=%.60q: code %d, %q", name, a.Code, a.Remark)
		}
	}
	if answers[0] < 100 {
		t.Errorf("codes of the answers: %v", answers)
	}
	stop()
	for path, text := range files(t, base) {
		rel, err := filepath.Rel(base, path)
		if err != nil {
			t.Fatal(err)
		}
		switch rel {
		case "keep":
			if text != "stays" {
				t.Errorf("it has %q", text)
			}
		case "a/b/own.conf", "a/b/own.conf.bak", "a/b/namesrv/kvConfig.json", "a/b/namesrv/kvConfig.json.bak":
		default:
			t.Errorf("there is %s", rel)
		}
	}
}
