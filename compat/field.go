package compat

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// FieldName is the rule by which Go fields and Java fields meet, in headers, bodies and properties: the
// Go name with its first letter lowered (QueueId, queueId).
func FieldName(goName string) string {
	if goName == "" || goName[0] < 'A' || goName[0] > 'Z' {
		return goName
	}
	return string(goName[0]+'a'-'A') + goName[1:]
}

// propertyField is a field of a configuration struct and its key.
type propertyField struct {
	key   string
	index []int
}

var propertyFields sync.Map // reflect.Type -> []propertyField in key order

// propertiesOf returns the fields that properties reach: exported, of a plain type, not tagged `rmq:"-"`;
// embedded structs are flattened.
func propertiesOf(t reflect.Type) []propertyField {
	if f, ok := propertyFields.Load(t); ok {
		return f.([]propertyField)
	}
	var fields []propertyField
	var collect func(t reflect.Type, path []int)
	collect = func(t reflect.Type, path []int) {
		for i := range t.NumField() {
			f := t.Field(i)
			index := append(slices.Clone(path), i)
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				collect(f.Type, index)
				continue
			}
			key := f.Tag.Get("rmq")
			if key == "" {
				key = FieldName(f.Name)
			}
			switch f.Type.Kind() {
			case reflect.String, reflect.Int, reflect.Int32, reflect.Int64, reflect.Bool, reflect.Float64:
				if f.IsExported() && key != "-" {
					fields = append(fields, propertyField{key, index})
				}
			}
		}
	}
	collect(t, nil)
	slices.SortStableFunc(fields, func(a, b propertyField) int { return strings.Compare(a.key, b.key) })
	f, _ := propertyFields.LoadOrStore(t, fields)
	return f.([]propertyField)
}

// BindProperties writes properties to the fields of the configuration struct that dst points to, as
// MixAll#properties2Object: key flushDiskType is field FlushDiskType, a tag `rmq:"name"` replaces the key and
// `rmq:"-"` keeps a field out; string, int, int32, int64, bool and float64 fields, in embedded structs too. A
// boolean is true when its text is (in any case), else false. Keys without a field are returned in the order of
// the file. Values that do not parse leave their field alone; the error names each such key, its line and value (the official
// servers ignore them without a word).
func BindProperties(p *Properties, dst any) (unknown []string, err error) {
	v := reflect.ValueOf(dst).Elem()
	known := make(map[string]bool)
	var errs []error
	for _, f := range propertiesOf(v.Type()) {
		known[f.key] = true
		text, ok := p.Get(f.key)
		if !ok {
			continue
		}
		if err := setProperty(v.FieldByIndex(f.index), text); err != nil {
			where := ""
			if n := p.Line(f.key); n > 0 {
				where = fmt.Sprintf("line %d: ", n)
			}
			errs = append(errs, fmt.Errorf("%s%s=%s is not %w%s", where, f.key, text, err, CommentHint(text)))
		}
	}
	for _, key := range p.Keys() {
		if !known[key] {
			unknown = append(unknown, key)
		}
	}
	return unknown, errors.Join(errs...)
}

// CommentHint explains a value that means nothing by what was written behind it: only a line of its own can be a comment.
// "" when that is not it.
func CommentHint(value string) string {
	if strings.Contains(value, "#") {
		return " (a comment must have a line of its own: here it is part of the value)"
	}
	return ""
}

// OddBooleans returns the properties that BindProperties takes for false though they do not say so: aclEnable=yes.
func OddBooleans(p *Properties, dst any) []KeyValue {
	var odd []KeyValue
	v := reflect.Indirect(reflect.ValueOf(dst))
	for _, f := range propertiesOf(v.Type()) {
		text, ok := p.Get(f.key)
		plain := strings.TrimSpace(text)
		if ok && v.FieldByIndex(f.index).Kind() == reflect.Bool && !strings.EqualFold(plain, "true") && !strings.EqualFold(plain, "false") {
			odd = append(odd, KeyValue{f.key, text})
		}
	}
	return odd
}

// wholeNumber says what the text of a number should have been.
func wholeNumber(text string, bits int, err error) error {
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("a number from %d to %d", int64(-1)<<(bits-1), int64(1)<<(bits-1)-1)
	case strings.Trim(text[:min(1, len(text))], "0123456789") == "" && text != "" && CommentHint(text) == "":
		return errors.New("a whole number; it can have no unit, fraction or exponent")
	}
	return errors.New("a whole number")
}

// setProperty sets one field; the error is what its text should have been.
func setProperty(v reflect.Value, text string) error {
	plain := strings.TrimSpace(text) // Java keeps blanks behind a value, and then fails over them
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(strings.EqualFold(plain, "true"))
	case reflect.Float64:
		f, err := strconv.ParseFloat(plain, 64)
		if err != nil {
			return errors.New("a number")
		}
		v.SetFloat(f)
	default:
		n, err := strconv.ParseInt(plain, 10, v.Type().Bits())
		if err != nil {
			return wholeNumber(plain, v.Type().Bits(), err)
		}
		v.SetInt(n)
	}
	return nil
}

// PropertiesOf returns all fields of a configuration struct, or of what a pointer to one points to, as text in
// key order, as the GET_*_CONFIG answers have them. Of a key that two embedded structs share the first counts.
func PropertiesOf(src any) []KeyValue {
	v := reflect.Indirect(reflect.ValueOf(src))
	fields := propertiesOf(v.Type())
	list := make([]KeyValue, 0, len(fields))
	for i, f := range fields {
		if i > 0 && f.key == fields[i-1].key {
			continue
		}
		list = append(list, KeyValue{f.key, propertyText(v.FieldByIndex(f.index))})
	}
	return list
}

func propertyText(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float64:
		return string(AppendDouble(nil, v.Float()))
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}
