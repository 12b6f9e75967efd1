package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// ParseJSON parses JSON as fastjson writes it: beyond the standard, the key of an object may be a bare number or a
// whole object (`{0:"a"}`, `{{"topic":"T"}:1}`). Such a key becomes its own compact JSON text, as a string. Numbers
// become float64, like those of encoding/json.
func ParseJSON(text []byte) (any, error) {
	var v any
	if err := json.Unmarshal(text, &v); err == nil {
		return v, nil
	}
	p := dialect{s: string(text)}
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.space(); p.i != len(p.s) {
		return nil, p.fault("more after the end")
	}
	return v, nil
}

type dialect struct {
	s string
	i int
}

func (p *dialect) space() {
	for p.i < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *dialect) fault(what string) error {
	return fmt.Errorf("%s at byte %d of JSON, %.30q", what, p.i, p.s[min(p.i, len(p.s)):])
}

func (p *dialect) next() byte {
	if p.space(); p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func (p *dialect) value() (any, error) {
	switch p.next() {
	case '{':
		return p.object()
	case '[':
		return p.list()
	case '"':
		return p.text()
	}
	start := p.i
	for p.i < len(p.s) && strings.IndexByte(",:]} \t\r\n{[\"", p.s[p.i]) < 0 {
		p.i++
	}
	switch word := p.s[start:p.i]; word {
	case "true", "false":
		return word == "true", nil
	case "null":
		return nil, nil
	default:
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, p.fault("no value")
		}
		return n, nil
	}
}

func (p *dialect) text() (string, error) {
	end := p.i + 1
	for end < len(p.s) && p.s[end] != '"' {
		if p.s[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(p.s) {
		return "", p.fault("string without an end")
	}
	var v string
	if err := json.Unmarshal([]byte(p.s[p.i:end+1]), &v); err != nil {
		return "", p.fault(err.Error())
	}
	p.i = end + 1
	return v, nil
}

func (p *dialect) list() (any, error) {
	p.i++
	out := []any{}
	for {
		switch p.next() {
		case ']':
			p.i++
			return out, nil
		case ',':
			p.i++
			continue
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
}

func (p *dialect) object() (any, error) {
	p.i++
	out := map[string]any{}
	for {
		switch p.next() {
		case '}':
			p.i++
			return out, nil
		case ',':
			p.i++
			continue
		}
		k, err := p.value()
		if err != nil {
			return nil, err
		}
		key, ok := k.(string)
		if !ok {
			text, err := json.Marshal(k)
			if err != nil {
				return nil, err
			}
			key = string(text)
		}
		if p.next() != ':' {
			return nil, p.fault("no colon")
		}
		p.i++
		if out[key], err = p.value(); err != nil {
			return nil, err
		}
	}
}
