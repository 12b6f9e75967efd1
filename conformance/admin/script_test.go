//go:build conformance

package admin

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// A transcript is a file of commands, each followed by what it prints when it has been made comparable:
//
//	# A comment.
//	$ topicStatus -t AdminTopic | sort
//	    #Broker Name #QID …
//
// A command's words are separated by spaces, quotes keep them together, {names} stand for what differs from run to run, and
// filters (normal_test.go) stand behind bars. What a broker prints that serves request 351, which 4.9 does not have and
// tools of 5.x need, stands behind a mark of its own, recorded by 5.3.3; by 4.9.7 and the tools of 4.9.8 where the refusal
// shows as a figure only.
type transcript struct {
	path  string
	steps []*step
}

// step is one command of a transcript.
type step struct {
	comment string // the lines above it
	line    string // as written
	number  int    // of its line
	args    []string
	filters [][]string
	want    []string
	newer   []string // by a broker that serves 351, when the 4.9 broker refuses it
}

const (
	commandMark = "$ "
	outputMark  = "    "
	newerMark   = "  5 "
)

func readTranscript(path string) (*transcript, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &transcript{path: path}
	var above strings.Builder
	for n, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, commandMark):
			s := &step{comment: above.String(), line: line[len(commandMark):], number: n + 1}
			above.Reset()
			if err := s.parse(); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
			}
			t.steps = append(t.steps, s)
		case strings.HasPrefix(line, outputMark) && len(t.steps) > 0:
			last := t.steps[len(t.steps)-1]
			last.want = append(last.want, line[len(outputMark):])
		case strings.HasPrefix(line, newerMark) && len(t.steps) > 0:
			last := t.steps[len(t.steps)-1]
			last.newer = append(last.newer, line[len(newerMark):])
		case line == "" || line[0] == '#':
			above.WriteString(line + "\n")
		default:
			return nil, fmt.Errorf("%s:%d: neither a command nor output: %q", path, n+1, line)
		}
	}
	return t, nil
}

// parse splits the line into the command's words and the filters' words.
func (s *step) parse() error {
	parts := [][]string{nil}
	var word strings.Builder
	quoted, any := false, false
	end := func() {
		if any {
			parts[len(parts)-1] = append(parts[len(parts)-1], word.String())
		}
		word.Reset()
		any = false
	}
	for _, r := range s.line {
		switch {
		case r == '"':
			quoted, any = !quoted, true
		case quoted:
			word.WriteRune(r)
		case r == ' ':
			end()
		case r == '|' && !any:
			parts = append(parts, nil)
		default:
			word.WriteRune(r)
			any = true
		}
	}
	end()
	if quoted || slices.ContainsFunc(parts, func(p []string) bool { return len(p) == 0 }) {
		return fmt.Errorf("an open quote or an empty part in %q", s.line)
	}
	s.args, s.filters = parts[0], parts[1:]
	return nil
}

// has tells whether a filter of that name is given.
func (s *step) has(name string) bool {
	return slices.ContainsFunc(s.filters, func(f []string) bool { return f[0] == name })
}

// refused tells whether a tool of 5.x says that the broker does not serve GET_TOPIC_CONFIG.
func refused(lines []string) bool {
	return slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "type 351 not supported") })
}

// awaited tells whether an output has what a filter "await" names. One that can't come is not awaited.
func (s *step) awaited(lines []string) bool {
	if refused(lines) {
		return true
	}
	for _, f := range s.filters {
		if f[0] == "await" && !regexp.MustCompile(f[1]).MatchString(strings.Join(lines, "\n")) {
			return false
		}
	}
	return true
}

// write stores the transcript with the outputs that its steps have now.
func (t *transcript) write() error {
	var b strings.Builder
	for _, s := range t.steps {
		b.WriteString(s.comment + commandMark + s.line + "\n")
		for _, l := range s.want {
			b.WriteString(outputMark + l + "\n")
		}
		for _, l := range s.newer {
			b.WriteString(newerMark + l + "\n")
		}
	}
	return os.WriteFile(t.path, []byte(b.String()), 0o644)
}
