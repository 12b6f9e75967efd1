package message

// Property returns the value of a name in a properties text and whether it is there. Entries that the
// official reader drops (shorter than 3 characters, empty name or value) are not seen.
func Property(text, name string) (string, bool) { panic("skeleton") }

// AppendProperty appends one entry to a properties text (with the separator before it where needed).
func AppendProperty(dst []byte, name, value string) []byte { panic("skeleton") }

// SetProperty returns text with name set to value: an older entry is replaced in place.
func SetProperty(text, name, value string) string { panic("skeleton") }

// RemoveProperty returns text without the entries of name.
func RemoveProperty(text, name string) string { panic("skeleton") }

// EachProperty calls f for each entry, in order, until f returns false.
func EachProperty(text string, f func(name, value string) bool) { panic("skeleton") }
