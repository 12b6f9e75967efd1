//go:build conformance

package differential

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"rocketd/conformance/wire"
)

// entry is one line of a recording: a frame, or the opening or closing of a connection.
type entry struct {
	line int

	T             int64              `json:"t"` // ms
	Endpoint      string             `json:"ep"`
	Conn          int                `json:"conn"`
	Event         string             `json:"event"`
	Step          string             `json:"step"` // of a scenario
	Dir           string             `json:"dir"`
	Kind          string             `json:"kind"`
	ReqCode       *int               `json:"reqCode"`
	SerializeType string             `json:"serializeType"`
	Code          int                `json:"code"`
	Flag          int                `json:"flag"`
	Language      string             `json:"language"`
	Opaque        int32              `json:"opaque"`
	Version       int                `json:"version"`
	Remark        *string            `json:"remark"`
	ExtFields     map[string]*string `json:"extFields"`
	Body          string             `json:"body"`
}

func (e *entry) fromClient() bool { return e.Dir == "c2s" }
func (e *entry) isResponse() bool { return e.Kind == "response" }

// frame is the recorded frame.
func (e *entry) frame() (*wire.Frame, error) {
	f := &wire.Frame{Code: e.Code, Flag: e.Flag, Language: e.Language, Opaque: e.Opaque, Version: e.Version}
	if e.SerializeType == "ROCKETMQ" {
		f.Form = wire.Binary
	}
	if e.Remark != nil {
		f.Remark, f.HasRemark = *e.Remark, true
	}
	if e.ExtFields != nil {
		f.Ext = map[string]string{}
		for k, v := range e.ExtFields {
			if v != nil {
				f.Ext[k] = *v
			}
		}
	}
	var err error
	f.Body, err = base64.StdEncoding.DecodeString(e.Body)
	return f, err
}

const recordings = "../testdata/recordings"

// recordingNames are the recordings that there are, without the file names' ends.
func recordingNames() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(recordings, "*.jsonl.gz"))
	for i, f := range files {
		files[i] = filepath.Base(f[:len(f)-len(".jsonl.gz")])
	}
	return files, err
}

func loadRecording(name string) ([]*entry, error) {
	packed, err := os.ReadFile(filepath.Join(recordings, name+".jsonl.gz"))
	if err != nil {
		return nil, err
	}
	text, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 16<<20)
	var out []*entry
	for n := 1; lines.Scan(); n++ {
		e := &entry{line: n}
		if err := json.Unmarshal(lines.Bytes(), e); err != nil {
			return nil, fmt.Errorf("%s line %d: %w", name, n, err)
		}
		out = append(out, e)
	}
	return out, lines.Err()
}
