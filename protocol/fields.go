package protocol

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
// behind, the short spelling makes Bind fail when the field is absent (or empty, for a number). Field
// types: string, int32, int64, bool, and Optional of the last three. Embedded structs are flattened.
type Plan struct{ skeleton struct{} }

// PlanFor returns the plan of the header struct that v points to. Plans are built once per type; a
// struct with an unsupported field panics, so it shows at start-up.
func PlanFor(v any) *Plan { panic("skeleton") }

// Bind fills the header struct that dst points to from the ext fields of c. An absent field leaves
// the zero value (the official decoders only log it) unless it is required; that, and a number that does
// not parse, is a *FieldError.
func (p *Plan) Bind(c *Command, dst any) error { panic("skeleton") }

// FieldError is a header field that can't be read: its wire key and its text.
type FieldError struct{ Key, Value, Want string }

// Error implements error.
func (e *FieldError) Error() string {
	return "header field " + e.Key + ": " + e.Value + " is not " + e.Want
}
