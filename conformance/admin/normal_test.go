//go:build conformance

package admin

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rocketd/conformance/target"
)

// rule replaces what differs between two runs of the very same server.
type rule struct {
	pattern *regexp.Regexp
	by      string
	reason  string
}

// rules hold for the output of every command. What is not named here or by a filter of the step must be equal.
var rules = []rule{
	{regexp.MustCompile(`(?m)^\s+at .*\n|^\s+\.\.\. \d+ more\n`), "", "frames of the tool's own stack"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([:,]\d{3})?`), "{time}", "when a message was made or stored"},
	{regexp.MustCompile(`(^|[^\d.])1[6-9]\d{11}\b`), "${1}{millis}", "the same in milliseconds; the tools also use it as a name of theirs"},
	{regexp.MustCompile(`=20\d{15}\b`), "={time}", "the same as digits, in a client's report of its queues"},
	{regexp.MustCompile(`\b[0-9A-F]{56}\b|\b[0-9A-F]{32}\b`), "{id}", "an id of a message that the step has not sent itself: address, process, time, place in the log"},
	{regexp.MustCompile(`/?\b127\.0\.0\.1:\d+`), "{client}", "a client's port (the servers' addresses have names by now)"},
	{regexp.MustCompile(`\bV4_9_[78]\b`), "{version}", "the official servers are 4.9.7, rocketd says what it follows (4.9.8), and the tool is 4.9.8"},
	{regexp.MustCompile(`\b(commitLogOffset=|CommitLog Offset: +|physicOffset=)\d+`), "${1}{place}",
		"a place in the log: other topics' messages, such as delayed ones and retries, fall between others each time"},
	{regexp.MustCompile(`(preparedTransactionOffset=)[1-9]\d*`), "${1}{place}", "such a place, of a half message"},
	{regexp.MustCompile(`(@K@[^@\s]+@[^@\s]+@)\d+`), "${1}{place}", "such a place, in what 5.x says of an index"},
	{regexp.MustCompile(`@[0-9a-f]{5,8}\b`), "@{hash}", "a Java object's identity in a client's own report"},
	{regexp.MustCompile(`\$\$Lambda[^ @]*`), "{lambda}", "the name of a class that the client's JVM has made"},
	{regexp.MustCompile(`<\d+>|\bopaque=\d+`), "{opaque}", "a request's number in the tool"},
	{regexp.MustCompile(`(rt=|spentTimeMills=|cost )\d+`), "${1}{n}", "how long it took"},
	{regexp.MustCompile(`\d+\(ms\)`), "{n}(ms)", "what was left of the tool's patience"},
	{regexp.MustCompile(`MonitorService_-?\d+`), "MonitorService_{n}", "a name that the tool makes of the time and a random number"},
	{regexp.MustCompile(`(Consume TPS: )[\d.]+`), "${1}{n}", "a rate of the moments before"},
	{regexp.MustCompile(`(?m)[ \t]+`), " ", "columns are padded to what stands in them, such as addresses"},
}

// normal makes an output comparable: names for this run's values, the rules, the step's filters. Empty lines go.
func (r *run) normal(s *step, out string) ([]string, error) {
	for _, v := range r.valuesByLength() {
		if digits.MatchString(v) {
			out = regexp.MustCompile(`\b`+v+`\b`).ReplaceAllLiteralString(out, "{"+r.names[v]+"}")
			continue
		}
		out = strings.ReplaceAll(out, v, "{"+r.names[v]+"}")
	}
	for _, u := range rules {
		out = u.pattern.ReplaceAllString(out, u.by)
	}
	out = properties.ReplaceAllStringFunc(out, func(m string) string {
		name, list, _ := strings.Cut(m, "{")
		all := strings.Split(strings.TrimSuffix(list, "}"), ", ")
		slices.Sort(all)
		return name + "{" + strings.Join(all, ", ") + "}"
	})
	var lines []string
	for l := range strings.Lines(out) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if s.has("ours") && r.target.Kind == target.Rocketd {
		lines = official(lines, s.want)
	}
	for _, f := range s.filters {
		var err error
		if lines, err = filter(lines, f[0], f[1:]); err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// properties are a message's, in the order in which a Java hash table gives them away.
var properties = regexp.MustCompile(`(?i)properties(=|: ){[^{}]*({[\w.]+}[^{}]*)*}`)

// digits is a value that may be a part of another number.
var digits = regexp.MustCompile(`^\d+$`)

var number = regexp.MustCompile(`-?\b\d+(\.\d+)?([Ee]-?\d+)?\b%?`)

// filter applies one filter of a step:
//
//	sort          the order of the lines is that of a hash table or of clients' arrival
//	mask N…       the columns N… (from 1, or with a minus from the end) hold rates or times
//	numbers       every number is a rate, a time or a size of the machine
//	keys          of "name : value" and "name = value" lines the names alone count
//	but REGEX…    of such lines whose name matches only the name counts
//	head N        the first N lines count: how often the rest comes depends on time
//	upto TEXT     what follows the line with TEXT is the client's own (thread dumps)
//	only REGEX    the lines that match
//	without REGEX the lines that do not match
//	take NAME     the words of the output get names (see run.take)
//	blocks        the order of the parts of a route's lists is that of a hash table
//	servers       the order of a list of name servers is that of a hash table
//	ours          keys that only rocketd has do not count
//	await REGEX   what the official server's output must have before it is recorded
//	retry         what a broker changes, others learn a moment later: repeated until it is as expected
func filter(lines []string, name string, args []string) ([]string, error) {
	if want := map[string]int{"sort": 0, "numbers": 0, "keys": 0, "retry": 0, "blocks": 0, "servers": 0, "ours": 0, "await": 1, "head": 1, "upto": 1, "only": 1, "without": 1, "take": 1}; len(args) != want[name] && name != "mask" && name != "but" {
		return nil, fmt.Errorf("filter %s with %q", name, args)
	}
	switch name {
	case "retry", "take", "await", "ours":
	case "blocks":
		lines = sortBlocks(lines)
	case "servers":
		for i, l := range lines {
			lines[i] = strings.ReplaceAll(l, "[{ns2}, {ns1}]", "[{ns1}, {ns2}]")
		}
	case "sort":
		slices.Sort(lines)
	case "numbers":
		for i, l := range lines {
			lines[i] = number.ReplaceAllString(l, "{n}")
		}
	case "mask":
		for i, l := range lines {
			words := strings.Fields(l)
			for _, a := range args {
				n, err := strconv.Atoi(a)
				if err != nil {
					return nil, err
				}
				if n < 0 {
					n += len(words) + 1
				}
				if 0 < n && n <= len(words) && !strings.HasPrefix(l, "#") {
					words[n-1] = "{n}"
				}
			}
			lines[i] = strings.Join(words, " ")
		}
	case "keys", "but":
		for i, l := range lines {
			m := pairPattern.FindStringSubmatch(l)
			if m != nil && (name == "keys" || slices.ContainsFunc(args, func(a string) bool { return regexp.MustCompile(`^(` + a + `)$`).MatchString(m[1]) })) {
				lines[i] = m[1]
			}
		}
	case "head":
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return nil, err
		}
		lines = lines[:min(n, len(lines))]
	case "upto":
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, args[0]) }); i >= 0 {
			lines = lines[:i+1]
		}
	case "only", "without":
		pattern, err := regexp.Compile(args[0])
		if err != nil {
			return nil, err
		}
		lines = slices.DeleteFunc(lines, func(l string) bool { return pattern.MatchString(l) == (name == "without") })
	default:
		return nil, fmt.Errorf("no filter %q", name)
	}
	return lines, nil
}

// official leaves out the lines of keys that the official server does not have: rocketd's own limits, addresses and
// features of 5.x, which an operator wants to see where the others are.
func official(lines, want []string) []string {
	key := func(l string) string {
		if m := pairPattern.FindStringSubmatch(l); m != nil {
			l = m[1]
		}
		return strings.Trim(l, `"`)
	}
	known := map[string]bool{}
	for _, l := range want {
		known[key(l)] = true
	}
	return slices.DeleteFunc(lines, func(l string) bool { return !known[key(l)] })
}

// sortBlocks puts the parts of each list of a printed route in order: lines from "{" to "}" between "[" and "]".
func sortBlocks(lines []string) []string {
	var out, block []string
	var blocks []string
	listed, depth := false, 0
	for _, l := range lines {
		switch {
		case !listed:
			out = append(out, l)
			listed = strings.HasSuffix(l, ":[")
		case depth == 0 && strings.HasPrefix(l, "]"):
			slices.Sort(blocks)
			out = append(append(out, blocks...), l)
			blocks, listed = nil, false
		default:
			block = append(block, strings.TrimSuffix(l, ","))
			depth += strings.Count(l, "{") - strings.Count(l, "}")
			if depth == 0 {
				blocks, block = append(blocks, strings.Join(block, " ")), nil
			}
		}
	}
	return out
}
