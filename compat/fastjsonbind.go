package compat

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	jsoniter "github.com/json-iterator/go"
	"github.com/modern-go/reflect2"
)

// bodies is json-iterator taught to be as generous with types as fastjson.
var bodies = func() jsoniter.API {
	api := jsoniter.Config{}.Froze()
	api.RegisterExtension(&generous{api: api})
	return api
}()

// Unmarshal reads a body or a configuration file as fastjson does: all that Standardize takes; numbers as
// strings and numbers or booleans where text is wanted; null for zero; unknown members ignored, names
// compared without regard to case; maps with numbers or whole objects as keys. A struct with a method Defaults
// gets its defaults before its members are read. An array where a map is wanted, a number
// out of its type's range and text that is no JSON are errors. Empty text leaves v as it is. It never panics.
func Unmarshal(data []byte, v any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	standard, err := Standardize(data)
	if err != nil {
		return err
	}
	return bodies.Unmarshal(standard, v)
}

// ReadEnum returns the name that JSON text means for a Java enum: a string that is one of names, or an
// ordinal. Anything else is null in Java and "" here.
func ReadEnum(data []byte, names ...string) string {
	text := strings.Trim(string(data), `" `)
	for i, name := range names {
		if strings.EqualFold(text, name) || text == strconv.Itoa(i) {
			return name
		}
	}
	return ""
}

// generous is the json-iterator extension behind Unmarshal.
type generous struct {
	jsoniter.DummyExtension
	api jsoniter.API
}

// UpdateStructDescriptor gives members their names on the wire.
func (g *generous) UpdateStructDescriptor(d *jsoniter.StructDescriptor) {
	for _, b := range d.Fields {
		if name, _, _ := strings.Cut(b.Field.Tag().Get("json"), ","); name == "" {
			name = FieldName(b.Field.Name())
			b.FromNames, b.ToNames = []string{name}, []string{name}
		}
	}
}

// CreateDecoder replaces the decoders of the plain types.
func (g *generous) CreateDecoder(t reflect2.Type) jsoniter.ValDecoder {
	switch t.Type1() {
	case reflect.TypeFor[int](), reflect.TypeFor[int64]():
		return intDecoder(64)
	case reflect.TypeFor[int32]():
		return intDecoder(32)
	case reflect.TypeFor[float64]():
		return floatDecoder{}
	case reflect.TypeFor[bool]():
		return boolDecoder{}
	case reflect.TypeFor[string]():
		return textDecoder{}
	}
	return nil
}

// defaulted is a type whose members are not all zero in Java before its text is read.
type defaulted interface{ Defaults() }

// DecorateDecoder gives such a type its defaults first.
func (g *generous) DecorateDecoder(t reflect2.Type, d jsoniter.ValDecoder) jsoniter.ValDecoder {
	if t.Kind() == reflect.Struct && reflect.PointerTo(t.Type1()).Implements(reflect.TypeFor[defaulted]()) {
		return &defaultDecoder{t, d}
	}
	return d
}

type defaultDecoder struct {
	t reflect2.Type
	jsoniter.ValDecoder
}

func (d *defaultDecoder) Decode(ptr unsafe.Pointer, it *jsoniter.Iterator) {
	d.t.PackEFace(ptr).(defaulted).Defaults()
	d.ValDecoder.Decode(ptr, it)
}

// CreateMapKeyDecoder reads objects as keys.
func (g *generous) CreateMapKeyDecoder(t reflect2.Type) jsoniter.ValDecoder {
	if t.Kind() != reflect.Struct {
		return nil
	}
	return &keyDecoder{g.api, t}
}

// ReadText reads the next value, of whatever type, as text. False: it is null. A value that is none becomes an error of the iterator.
func ReadText(it *jsoniter.Iterator) (string, bool) {
	switch it.WhatIsNext() {
	case jsoniter.StringValue:
		return it.ReadString(), true
	case jsoniter.NilValue:
		it.Skip()
		return "", false
	default:
		return strings.TrimSpace(string(it.SkipAndReturnBytes())), true
	}
}

func refuse(it *jsoniter.Iterator, text, want string) {
	if it.Error == nil {
		it.ReportError("compat.Unmarshal", fmt.Sprintf("%.40q is not %s", text, want))
	}
}

// intDecoder reads int32, or int64 and int.
type intDecoder int

func (d intDecoder) Decode(ptr unsafe.Pointer, it *jsoniter.Iterator) {
	text, ok := ReadText(it)
	var n int64
	if ok && text != "" && text != "null" && text != "false" {
		var err error
		if n, err = strconv.ParseInt(text, 10, int(d)); err != nil {
			n, ok = oddInt(text, int(d))
			if !ok {
				refuse(it, text, fmt.Sprintf("an integer of %d bits", int(d)))
				return
			}
		}
	}
	if d == 32 {
		*(*int32)(ptr) = int32(n)
		return
	}
	*(*int64)(ptr) = n
}

// oddInt reads true as 1 and cuts the fraction of a decimal.
func oddInt(text string, bits int) (int64, bool) {
	if text == "true" {
		return 1, true
	}
	f, err := strconv.ParseFloat(text, 64)
	limit := math.Ldexp(1, bits-1)
	if err != nil || !(f > -limit-1 && f < limit) {
		return 0, false
	}
	return int64(f), true
}

type floatDecoder struct{}

func (floatDecoder) Decode(ptr unsafe.Pointer, it *jsoniter.Iterator) {
	text, ok := ReadText(it)
	var f float64
	if ok && text != "" && text != "null" {
		var err error
		if f, err = strconv.ParseFloat(text, 64); err != nil {
			refuse(it, text, "a double")
			return
		}
	}
	*(*float64)(ptr) = f
}

type boolDecoder struct{}

func (boolDecoder) Decode(ptr unsafe.Pointer, it *jsoniter.Iterator) {
	switch text, _ := ReadText(it); strings.ToLower(text) {
	case "true", "1", "y", "t", "yes":
		*(*bool)(ptr) = true
	case "false", "0", "n", "f", "no", "", "null":
		*(*bool)(ptr) = false
	default:
		refuse(it, text, "a boolean")
	}
}

type textDecoder struct{}

func (textDecoder) Decode(ptr unsafe.Pointer, it *jsoniter.Iterator) {
	*(*string)(ptr), _ = ReadText(it)
}

// keyDecoder reads a key that is the JSON text of a struct.
type keyDecoder struct {
	api jsoniter.API
	t   reflect2.Type
}

func (d *keyDecoder) Decode(ptr unsafe.Pointer, it *jsoniter.Iterator) {
	text := it.ReadString()
	standard, err := Standardize([]byte(text)) // a key inside a string has not been through it
	if err == nil {
		err = d.api.Unmarshal(standard, d.t.PackEFace(ptr))
	}
	if err != nil {
		refuse(it, text, "a key of type "+d.t.String())
	}
}
