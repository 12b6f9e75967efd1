package protocol

// Language is the language code of a peer.
type Language byte

// Language codes. Others that arrive are kept as Other.
const (
	Java Language = iota
	Cpp
	DotNet
	Python
	Delphi
	Erlang
	Ruby
	Other
	HTTP
	Go
	PHP
	OMS
	Rust
	NodeJS // 5.x
)

var languageNames = [...]string{"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS"}

// String returns the wire name.
func (l Language) String() string {
	if int(l) < len(languageNames) {
		return languageNames[l]
	}
	return languageNames[Other]
}

// ParseLanguage returns the language of a wire name; an unknown one is Other.
func ParseLanguage(name string) Language {
	for i, n := range languageNames {
		if n == name {
			return Language(i)
		}
	}
	return Other
}
