//go:build conformance

package badinput

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rocketd/conformance/wire"
)

// answer is what a server does with one request.
type answer struct {
	code   int    // silent when none came
	remark string // without what differs from run to run
	ext    string // the names of the ext fields; "-" when there are none, "{}" when there is an empty object
	kept   bool   // the connection goes on
}

// silent is the code of no answer.
const silent = -1000

// exception is what stands for the text of a Java exception, which names classes and source lines.
const exception = "<exception>"

var (
	exceptionText = regexp.MustCompile(`(?s)\b(java|org\.apache|com\.alibaba|io\.netty)\.[\w.$]+(Exception|Error)\b.*`)
	addressText   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

func (a answer) String() string {
	kept := "closed"
	if a.kept {
		kept = "kept"
	}
	if a.code == silent {
		return "silence\t\t-\t" + kept
	}
	return fmt.Sprintf("%d\t%s\t%s\t%s", a.code, strconv.Quote(a.remark), a.ext, kept)
}

func parseAnswer(columns []string) (a answer, err error) {
	if len(columns) != 4 {
		return a, fmt.Errorf("%d columns", len(columns))
	}
	a.ext, a.kept = columns[2], columns[3] == "kept"
	if columns[0] == "silence" {
		a.code = silent
		return a, nil
	}
	if a.code, err = strconv.Atoi(columns[0]); err != nil {
		return a, err
	}
	a.remark, err = strconv.Unquote(columns[1])
	return a, err
}

// isLike tells whether a server may answer a where the official one answers o: an exception may be told in any words.
func (a answer) isLike(o answer) bool {
	before, _, thrown := strings.Cut(o.remark, exception)
	if thrown {
		if a.remark == "" || !strings.HasPrefix(a.remark, before) {
			return false
		}
		a.remark = o.remark
	}
	return a == o
}

// ask makes one request on a connection of its own, and another behind it that shows whether the connection is kept.
// patience is how long an answer may take, short how long silence is listened to.
func ask(addr string, f, probe *wire.Frame, patience, short time.Duration) (answer, error) {
	c, err := wire.Dial(addr, nil)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	a := answer{code: silent, ext: "-"}
	waiting, err := c.Send(f)
	if err != nil {
		return a, nil // closed while the request was still being written
	}
	_, err = c.Call(probe, patience)
	switch {
	case err == nil:
		a.kept = true
		patience = short
	case !errors.Is(err, wire.ErrClosed):
		return a, fmt.Errorf("the request behind it: %w", err)
	}
	got, err := waiting.Wait(patience)
	if err != nil {
		return a, nil
	}
	a.code, a.remark = got.Code, normal(got.Remark)
	switch {
	case len(got.Ext) > 0:
		a.ext = strings.Join(got.ExtNames(), " ")
	case got.Ext != nil && got.Form == wire.JSON:
		a.ext = "{}"
	}
	return a, nil
}

func normal(remark string) string {
	remark = exceptionText.ReplaceAllString(remark, exception)
	remark = addressText.ReplaceAllString(remark, "127.0.0.1:*")
	if len(remark) > 400 {
		remark = remark[:400] + "…"
	}
	return strings.ToValidUTF8(remark, "?")
}

// recording is what the official server answered, by the case's id.
type recording struct {
	ids     []string // in the order of writing
	answers map[string]answer
}

func (r *recording) put(id string, a answer) {
	r.ids = append(r.ids, id)
	r.answers[id] = a
}

func (r *recording) write(name string) error {
	var b strings.Builder
	for _, id := range r.ids {
		fmt.Fprintf(&b, "%s\t%s\n", id, r.answers[id])
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}

func readRecording(name string) (*recording, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := &recording{answers: map[string]answer{}}
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		columns := strings.Split(s.Text(), "\t")
		if len(columns) != 7 {
			return nil, fmt.Errorf("%s:%d: %d columns", name, n, len(columns))
		}
		a, err := parseAnswer(columns[3:])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		r.put(strings.Join(columns[:3], "\t"), a)
	}
	return r, s.Err()
}
