package compat

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The dialect of JSON that fastjson 1.2.69 writes, and that Java brokers, mqadmin and other clients expect:
// members in alphabetical order, null members left out, maps with numbers or objects as bare keys, doubles
// with a decimal.

// dialect is one of fastjson's forms.
type dialect struct {
	browser bool // keys that are no strings become strings, all that is not ASCII and the slash are escaped
	pretty  bool // tabs and new lines
}

// Marshal returns v as RemotingSerializable.encode of 4.9.8 writes it: compact; struct fields in
// alphabetical order under their Go name with the first letter lowered (`json:"x"` overrides it, `json:"-"`
// leaves the field out); nil pointers left out, and with `json:",omitempty"` also empty strings, nil slices
// and nil maps (elsewhere those are written as [] and {}); integer map keys bare, struct map keys as inline
// objects, keys sorted; floats as Double.toString has them, NaN and infinities as null; text as raw UTF-8
// without HTML escapes. Types: bool, int, int32, int64, float64, string, struct, slice, map, pointer and
// any of these in an interface; another is an error.
func Marshal(v any) ([]byte, error) { return encode(v, dialect{}) }

// MarshalStandard is Marshal in standard JSON, as the 4.9.8 name server answers a route to clients from
// 4.9.4 on: numbers as keys quoted, objects as keys written as strings of JSON, slashes escaped and all
// that is not ASCII as \uXXXX (fastjson's BrowserCompatible).
func MarshalStandard(v any) ([]byte, error) { return encode(v, dialect{browser: true}) }

// MarshalPretty is Marshal in fastjson's PrettyFormat with tabs, as the files below config/ have it. A map
// with bare keys gets its new line only before the closing brace.
func MarshalPretty(v any) ([]byte, error) { return encode(v, dialect{pretty: true}) }

func encode(v any, d dialect) ([]byte, error) {
	w := writer{dialect: d}
	w.value(reflect.ValueOf(v))
	if w.err != nil {
		return nil, w.err
	}
	return w.b, nil
}

// writer writes one value. The first error stops nothing but is kept.
type writer struct {
	dialect
	b      []byte
	indent int
	err    error
}

func (w *writer) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		w.b = strconv.AppendBool(w.b, v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Int16, reflect.Int8:
		w.b = strconv.AppendInt(w.b, v.Int(), 10)
	case reflect.Float64:
		w.b = AppendDouble(w.b, v.Float())
	case reflect.String:
		w.b = appendString(w.b, v.String(), w.browser)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			w.b = append(w.b, "null"...)
			return
		}
		w.value(v.Elem())
	case reflect.Slice, reflect.Array:
		w.list(v)
	case reflect.Map:
		w.table(v)
	case reflect.Struct:
		w.object(v)
	case reflect.Invalid:
		w.b = append(w.b, "null"...)
	default:
		w.fail(v.Type())
	}
}

func (w *writer) fail(t reflect.Type) {
	if w.err == nil {
		w.err = fmt.Errorf("compat: fastjson bodies have no %v", t)
	}
}

// line begins a new line, in the pretty form.
func (w *writer) line() {
	if !w.pretty {
		return
	}
	w.b = append(w.b, '\n')
	for range w.indent {
		w.b = append(w.b, '\t')
	}
}

// Ints is an int[] of Java, which fastjson keeps on one line in the pretty form too.
type Ints []int

var ints = reflect.TypeFor[Ints]()

func (w *writer) list(v reflect.Value) {
	if v.Len() == 0 {
		w.b = append(w.b, "[]"...)
		return
	}
	lines := v.Type() != ints
	w.b = append(w.b, '[')
	w.indent++
	for i := range v.Len() {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		if lines {
			w.line()
		}
		w.value(v.Index(i))
	}
	w.indent--
	if lines {
		w.line()
	}
	w.b = append(w.b, ']')
}

func (w *writer) object(v reflect.Value) {
	fields := fieldsOf(v.Type())
	if len(fields) == 0 {
		w.b = append(w.b, "{}"...)
		return
	}
	w.b = append(w.b, '{')
	w.indent++
	w.line()
	first := true
	for i := range fields {
		f := &fields[i]
		fv := v.FieldByIndex(f.index)
		if f.absent(fv) {
			continue
		}
		if !first {
			w.b = append(w.b, ',')
			w.line()
		}
		first = false
		w.b = appendString(w.b, f.name, w.browser)
		w.b = append(w.b, ':')
		w.value(fv)
	}
	w.indent--
	w.line()
	w.b = append(w.b, '}')
}

// tableEntry is one entry of a map with its key's text, by which maps are sorted.
type tableEntry struct {
	key   []byte
	n     int64
	value reflect.Value
}

func (w *writer) table(v reflect.Value) {
	if v.Len() == 0 {
		w.b = append(w.b, "{}"...)
		return
	}
	w.indent++
	entries := make([]tableEntry, 0, v.Len())
	kind := v.Type().Key().Kind()
	bare := kind != reflect.String && !w.browser
	for it := v.MapRange(); it.Next(); {
		e := tableEntry{value: it.Value()}
		switch k := it.Key(); kind {
		case reflect.String:
			e.key = appendString(nil, k.String(), w.browser)
		case reflect.Int, reflect.Int32, reflect.Int64:
			e.n = k.Int()
			e.key = w.quoteKey(strconv.AppendInt(nil, e.n, 10))
		case reflect.Struct:
			inner := writer{dialect: dialect{pretty: w.pretty && bare}, indent: w.indent}
			inner.object(k)
			e.key = w.quoteKey(inner.b)
			if w.err == nil {
				w.err = inner.err
			}
		default:
			w.fail(v.Type())
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b tableEntry) int {
		if a.n != b.n {
			if a.n < b.n {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.key, b.key)
	})
	w.b = append(w.b, '{')
	for i := range entries {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		if !bare {
			w.line()
		}
		w.b = append(w.b, entries[i].key...)
		w.b = append(w.b, ':')
		w.value(entries[i].value)
	}
	w.indent--
	w.line()
	w.b = append(w.b, '}')
}

// quoteKey makes a string of a key that is none, where the form wants it.
func (w *writer) quoteKey(key []byte) []byte {
	if w.browser {
		return appendString(nil, string(key), true)
	}
	return key
}

// AppendDouble appends f as Java's Double.toString, or null when it is no number: decimal from 10^-3 to
// 10^7, else d.dddE±n; always at least one decimal.
func AppendDouble(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	abs := math.Abs(f)
	if abs == 0 || abs >= 1e-3 && abs < 1e7 {
		from := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
		if bytes.IndexByte(dst[from:], '.') < 0 {
			dst = append(dst, '.', '0')
		}
		return dst
	}
	text := strconv.FormatFloat(f, 'E', -1, 64) // d.dddE±nn
	mantissa, exponent, _ := strings.Cut(text, "E")
	dst = append(dst, mantissa...)
	if !strings.Contains(mantissa, ".") {
		dst = append(dst, '.', '0')
	}
	n, _ := strconv.Atoi(exponent)
	return strconv.AppendInt(append(dst, 'E'), int64(n), 10)
}

// bodyField is one member of a struct.
type bodyField struct {
	name      string
	index     []int
	omitempty bool
}

// absent tells whether the member is left out: Java's null.
func (f *bodyField) absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Slice, reflect.Map:
		return f.omitempty && v.IsNil()
	case reflect.String:
		return f.omitempty && v.Len() == 0
	}
	return false
}

var bodyFields sync.Map // reflect.Type -> []bodyField in the order of the wire

func fieldsOf(t reflect.Type) []bodyField {
	if f, ok := bodyFields.Load(t); ok {
		return f.([]bodyField)
	}
	fields := collectFields(t, nil, nil)
	slices.SortFunc(fields, func(a, b bodyField) int { return strings.Compare(a.name, b.name) })
	f, _ := bodyFields.LoadOrStore(t, fields)
	return f.([]bodyField)
}

func collectFields(t reflect.Type, path []int, fields []bodyField) []bodyField {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(path), i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			fields = collectFields(f.Type, index, fields)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = FieldName(f.Name)
		}
		fields = append(fields, bodyField{name: name, index: index, omitempty: options == "omitempty"})
	}
	return fields
}
