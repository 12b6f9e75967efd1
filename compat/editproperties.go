package compat

import (
	"bytes"
	"strings"
)

// EditProperties changes values in the text of a properties file and leaves all else as it stands: comments, order,
// blanks, keys that are not asked for. Of a key that is there twice the first line gets the value and the others go;
// a key that is not there is added at the end. The text is read by the rules of ParseProperties.
func EditProperties(text []byte, changed []KeyValue) []byte {
	values := make(map[string]string, len(changed))
	for _, kv := range changed {
		values[kv.Key] = kv.Value
	}
	written := make(map[string]bool, len(changed))
	all := string(text)
	mark := ""
	if strings.HasPrefix(all, byteOrderMark) {
		mark, all = byteOrderMark, all[len(byteOrderMark):]
	}
	out := bytes.NewBufferString(mark)
	lines := propertyLines{text: all}
	open := false // the last line goes on in one that is not there
	for lines.text != "" {
		start := len(all) - len(lines.text)
		line := strings.TrimLeft(lines.natural(), blanks)
		joined := false
		if line != "" && line[0] != '#' && line[0] != '!' {
			for continues(line) && lines.text != "" {
				line = line[:len(line)-1] + strings.TrimLeft(lines.natural(), blanks)
				joined = true
			}
			open = continues(line)
		}
		raw := all[start : len(all)-len(lines.text)]
		key, old := cutProperty(line)
		key, err := unescapeProperty(key)
		value, wanted := values[key]
		switch {
		case line == "" || line[0] == '#' || line[0] == '!' || err != nil || !wanted:
			out.WriteString(raw)
		case !written[key]:
			written[key], open = true, false
			out.Write(editLine(raw, line, key, old, value, joined))
		}
	}
	for _, kv := range changed {
		if written[kv.Key] {
			continue
		}
		written[kv.Key] = true
		if b := out.Bytes(); len(b) > len(mark) && b[len(b)-1] != '\n' && b[len(b)-1] != '\r' {
			out.WriteByte('\n')
		}
		if open {
			if bytes.HasSuffix(out.Bytes(), []byte("\r")) {
				out.WriteByte('\n')
			}
			out.WriteByte('\n')
			open = false
		}
		out.Write(AppendProperty(out.AvailableBuffer(), kv.Key, values[kv.Key]))
	}
	return out.Bytes()
}

// editLine is the line of a key with another value: in the form that it has, or key=value when that was several lines
// or had no separator.
func editLine(raw, line, key, old, value string, joined bool) []byte {
	fresh := AppendProperty(nil, key, value)
	body := strings.TrimRight(raw, "\r\n")
	end := raw[len(body):]
	if end == "" {
		end = "\n"
	}
	head := body[:max(0, len(body)-len(old))]
	separator := strings.TrimRight(head, blanks)
	if joined || !strings.HasSuffix(body, line) || !strings.HasSuffix(separator, "=") && !strings.HasSuffix(separator, ":") {
		return append(bytes.TrimSuffix(fresh, []byte("\n")), end...)
	}
	tail := AppendProperty(nil, "k", value)[len("k="):]
	return append([]byte(head+strings.TrimSuffix(string(tail), "\n")), end...)
}
