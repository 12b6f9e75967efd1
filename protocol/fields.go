package protocol

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"rocketd/compat"
)

// Optional is a numeric or boolean header field whose absence means something (Java's null).
type Optional[T int32 | int64 | bool] struct {
	Value T
	Set   bool
}

// Some returns a present Optional.
func Some[T int32 | int64 | bool](v T) Optional[T] { return Optional[T]{v, true} }

// Plan binds one typed header struct to ext fields. A field's wire key is its Go name with the first
// letter lowered; a tag `rmq:"name"` replaces it, `rmq:"name,short"` adds a second spelling that is
// accepted too, and `rmq:",short"` adds the spelling and keeps the name; the word `required` in place of, or
// behind, the short spelling makes Bind fail when the field is absent (or empty, for a number). A number of
// another field that does not parse counts as absent, as the official decoders only log it; the word `strict`, and a
// one-letter key, make it an error, an empty text too, as their fast codec does. Field types: string, int32, int64, bool, and
// Optional of the last three. Embedded structs are flattened.
type Plan struct {
	name     string
	fields   []planField
	letters  [128]uint8       // one-letter keys: index of the field + 1
	keys     map[string]uint8 // longer keys: index of the field
	required uint64           // bit i: fields[i] must be there
	strict   uint64           // bit i: fields[i] must parse, required or not
	missing  int              // the Missing field of the struct + 1; 0 = none
}

// Missing in a header struct takes the key of the first required field that is absent. Bind then does not fail: the
// handler makes the checks that come first and fails itself. "" = nothing is missing. It is not on the wire.
type Missing string

// planField is one field of a plan.
type planField struct {
	key   string // wire key
	quote string // the key as the beginning of a JSON member: "key":"
	index int    // field of the struct, or of the embedded struct that path leads to
	path  []int  // fields that lead to the embedded struct; mostly empty
	kind  fieldKind
}

// fieldKind is the type of a header field.
type fieldKind uint8

const (
	kindString fieldKind = iota
	kindInt32
	kindInt64
	kindBool
	kindOptInt32
	kindOptInt64
	kindOptBool
)

var (
	plans     atomic.Pointer[map[reflect.Type]*Plan] // by pointer type; replaced as a whole
	plansLock sync.Mutex                             // held to replace it
)

// PlanFor returns the plan of the header struct that v points to. Plans are built once per type; a
// struct with an unsupported field panics, so it shows at start-up.
func PlanFor(v any) *Plan {
	t := reflect.TypeOf(v)
	if m := plans.Load(); m != nil {
		if p, ok := (*m)[t]; ok {
			return p
		}
	}
	return addPlan(t)
}

func addPlan(t reflect.Type) *Plan {
	plansLock.Lock()
	defer plansLock.Unlock()
	next := make(map[reflect.Type]*Plan)
	if m := plans.Load(); m != nil {
		if p, ok := (*m)[t]; ok {
			return p
		}
		for k, v := range *m {
			next[k] = v
		}
	}
	p := newPlan(t)
	next[t] = p
	plans.Store(&next)
	return p
}

func newPlan(t reflect.Type) *Plan {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("protocol: %v is not a pointer to a header struct", t))
	}
	p := &Plan{name: t.Elem().String(), keys: make(map[string]uint8)}
	p.addStruct(t.Elem(), nil)
	return p
}

// Keys returns the wire keys of the header in the order in which they are written.
func (p *Plan) Keys() []string {
	keys := make([]string, len(p.fields))
	for i := range p.fields {
		keys[i] = p.fields[i].key
	}
	return keys
}

// HeaderField is what a Plan tells of one field.
type HeaderField struct {
	Key    string // wire key
	Letter string // the short spelling; "" = none
	Number bool   // an int or a long, and no string or bool
}

// Fields returns the header's fields in the order in which they are written.
func (p *Plan) Fields() []HeaderField {
	fields := make([]HeaderField, len(p.fields))
	for i := range p.fields {
		fields[i] = HeaderField{Key: p.fields[i].key, Number: p.fields[i].number()}
	}
	for letter, n := range p.letters {
		if n > 0 && fields[n-1].Key != string(rune(letter)) {
			fields[n-1].Letter = string(rune(letter))
		}
	}
	return fields
}

func (p *Plan) addStruct(t reflect.Type, path []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			p.addStruct(f.Type, append(append([]int(nil), path...), i))
			continue
		}
		if !f.IsExported() {
			panic("protocol: " + p.name + "." + f.Name + " is not exported")
		}
		if f.Type == reflect.TypeFor[Missing]() && len(path) == 0 {
			p.missing = i + 1
			continue
		}
		kind, ok := kindOf(f.Type)
		if !ok {
			panic("protocol: " + p.name + "." + f.Name + " has a type that headers do not have")
		}
		if len(p.fields) == 64 {
			panic("protocol: " + p.name + " has more than 64 fields")
		}
		parts := strings.Split(f.Tag.Get("rmq"), ",")
		key := parts[0]
		if key == "" {
			key = compat.FieldName(f.Name)
		}
		n := uint8(len(p.fields))
		p.fields = append(p.fields, planField{key: key, quote: string(compat.AppendString(nil, key)) + `:"`, index: i, path: path, kind: kind})
		p.addKey(key, n)
		for _, word := range parts[1:] {
			switch word {
			case "":
			case "required":
				p.required |= 1 << n
			case "strict":
				p.strict |= 1 << n
			default:
				p.addKey(word, n)
			}
		}
	}
}

func (p *Plan) addKey(key string, n uint8) {
	if _, twice := p.find(key); twice {
		panic("protocol: " + p.name + " has the key " + key + " twice")
	}
	if len(key) == 1 && key[0] < 128 {
		p.letters[key[0]] = n + 1
		return
	}
	p.keys[key] = n
}

// find returns the index of the field with a key.
func (p *Plan) find(key string) (int, bool) {
	if len(key) == 1 && key[0] < 128 {
		return int(p.letters[key[0]]) - 1, p.letters[key[0]] != 0
	}
	n, ok := p.keys[key]
	return int(n), ok
}

func kindOf(t reflect.Type) (fieldKind, bool) {
	switch t {
	case reflect.TypeFor[string]():
		return kindString, true
	case reflect.TypeFor[int32]():
		return kindInt32, true
	case reflect.TypeFor[int64]():
		return kindInt64, true
	case reflect.TypeFor[bool]():
		return kindBool, true
	case reflect.TypeFor[Optional[int32]]():
		return kindOptInt32, true
	case reflect.TypeFor[Optional[int64]]():
		return kindOptInt64, true
	case reflect.TypeFor[Optional[bool]]():
		return kindOptBool, true
	}
	return 0, false
}

// number tells whether the field is an int or a long.
func (f *planField) number() bool {
	return f.kind != kindString && f.kind != kindBool && f.kind != kindOptBool
}

// value returns the field f of the header struct v.
func (f *planField) value(v reflect.Value) reflect.Value {
	for _, i := range f.path {
		v = v.Field(i)
	}
	return v.Field(f.index)
}

// Bind fills the header struct that dst points to from the ext fields of c. An absent field leaves
// the zero value (the official decoders only log it) unless it is required; that, and a number that does
// not parse where it must, is a *FieldError. Of a key that is there twice the last counts, as in Java's map.
func (p *Plan) Bind(c *Command, dst any) error {
	v := reflect.ValueOf(dst).Elem()
	var seen, bad uint64
	for i := range c.Fields {
		n, ok := p.find(c.Fields[i].Key)
		if !ok {
			continue
		}
		f, text := &p.fields[n], c.Fields[i].Value
		if (seen|bad)>>n&1 != 0 { // there already: this one takes its place, whatever it is
			f.value(v).SetZero()
			seen &^= 1 << n
			bad &^= 1 << n
		}
		switch {
		case text == "" && f.number() && (p.strict>>n&1 != 0 || len(c.Fields[i].Key) == 1):
			bad |= 1 << n
		case text == "" && f.kind != kindString:
		case f.set(f.value(v), text):
			seen |= 1 << n
		case (p.required|p.strict)>>n&1 != 0 || len(c.Fields[i].Key) == 1:
			bad |= 1 << n
		}
	}
	if bad != 0 {
		return p.badField(c, bad)
	}
	if missing := p.required &^ seen; missing != 0 {
		for n := range p.fields {
			if missing>>n&1 != 0 {
				if p.missing > 0 {
					v.Field(p.missing - 1).SetString(p.fields[n].key)
					return nil
				}
				return &FieldError{Key: p.fields[n].key}
			}
		}
	}
	return nil
}

// badField makes the error of the fields in bad, whose last texts do not parse; of several the first in the request.
func (p *Plan) badField(c *Command, bad uint64) *FieldError {
	var e *FieldError
	for i := len(c.Fields) - 1; i >= 0; i-- {
		n, ok := p.find(c.Fields[i].Key)
		if !ok || bad>>n&1 == 0 {
			continue
		}
		bad &^= 1 << n
		e = &FieldError{Key: c.Fields[i].Key, Value: c.Fields[i].Value, Want: "an int"}
		if kind := p.fields[n].kind; kind == kindInt64 || kind == kindOptInt64 {
			e.Want = "a long"
		}
	}
	return e
}

// set writes text to the field v. False: it is not a number of the field's type.
func (f *planField) set(v reflect.Value, text string) bool {
	bits := 32
	switch f.kind {
	case kindString:
		v.SetString(text)
		return true
	case kindBool:
		v.SetBool(parseBool(text))
		return true
	case kindOptBool:
		v.Field(0).SetBool(parseBool(text))
		v.Field(1).SetBool(true)
		return true
	case kindInt64, kindOptInt64:
		bits = 64
	}
	n, ok := parseInt(text, bits)
	if !ok {
		return false
	}
	if f.kind == kindInt32 || f.kind == kindInt64 {
		v.SetInt(n)
		return true
	}
	v.Field(0).SetInt(n)
	v.Field(1).SetBool(true)
	return true
}

// appendValue appends the text of the field v, and tells whether it is to be written at all: an empty
// string and an Optional that is not set are not.
func (f *planField) appendValue(dst []byte, v reflect.Value) ([]byte, bool) {
	switch f.kind {
	case kindInt32, kindInt64:
		return strconv.AppendInt(dst, v.Int(), 10), true
	case kindBool:
		return strconv.AppendBool(dst, v.Bool()), true
	case kindOptInt32, kindOptInt64:
		if v.Field(1).Bool() {
			return strconv.AppendInt(dst, v.Field(0).Int(), 10), true
		}
	case kindOptBool:
		if v.Field(1).Bool() {
			return strconv.AppendBool(dst, v.Field(0).Bool()), true
		}
	}
	return dst, false
}

// Texts appends the ext fields of the header that v points to, as they go on the wire: what a signature is made of.
func (p *Plan) Texts(fields []Field, v any) []Field {
	header := reflect.ValueOf(v).Elem()
	for i := range p.fields {
		f := &p.fields[i]
		value := f.value(header)
		if f.kind == kindString {
			if text := value.String(); text != "" {
				fields = append(fields, Field{f.key, text})
			}
		} else if text, ok := f.appendValue(nil, value); ok {
			fields = append(fields, Field{f.key, string(text)})
		}
	}
	return fields
}

// parseBool is Java's Boolean.parseBoolean.
func parseBool(s string) bool { return len(s) == 4 && strings.EqualFold(s, "true") }

// parseInt is Java's Integer.parseInt or Long.parseLong: an optional sign, decimal digits, the range of
// the type, and nothing else. (Java takes the digits of every script; nobody sends others.)
func parseInt(s string, bits int) (int64, bool) {
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if s == "" {
		return 0, false
	}
	limit := uint64(1) << (bits - 1) // how far negative numbers go
	var n uint64
	for i := range len(s) {
		d := uint64(s[i] - '0')
		if d > 9 || n > (limit-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), n < limit
}

// FieldError is a header field that can't be read: its wire key and its text, and what it should have
// been; Want is empty when the field is missing.
type FieldError struct{ Key, Value, Want string }

// Error implements error.
func (e *FieldError) Error() string {
	if e.Want == "" {
		return "header field " + e.Key + " is missing"
	}
	return "header field " + e.Key + ": " + e.Value + " is not " + e.Want
}
