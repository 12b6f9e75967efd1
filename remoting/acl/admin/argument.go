package admin

import (
	"strings"
	"unicode/utf8"

	"rocketd/compat"
	"rocketd/protocol"
	"rocketd/protocol/body"
	"rocketd/remoting"
)

// How much of its arguments a line shows (bytes).
const (
	maxValue     = 256
	maxArguments = 2048
)

// masked stands for a secret.
const masked = "******"

// arguments is what a request is about, in one line, and the secrets that it brings.
type arguments struct {
	text    strings.Builder
	secrets []string
}

// add adds a key and its value.
func (a *arguments) add(key, value string, secret bool) {
	if secret && value != "" {
		a.secrets = append(a.secrets, value)
		value = masked
	}
	if a.text.Len() >= maxArguments {
		return
	}
	if a.text.Len() > 0 {
		a.text.WriteByte(' ')
	}
	a.text.WriteString(cut(key))
	a.text.WriteByte('=')
	a.text.WriteString(cut(value))
}

func cut(value string) string {
	if len(value) <= maxValue {
		return value
	}
	n := maxValue
	for n > 0 && !utf8.RuneStart(value[n]) {
		n--
	}
	return value[:n] + "…"
}

// argumentsOf takes the fields that the header of the code has, no others, and what the body says.
func argumentsOf(cmd *protocol.Command, plan *protocol.Plan) *arguments {
	a := new(arguments)
	named, _ := cmd.Field("key") // of a KV pair
	if plan != nil {
		for _, f := range plan.Fields() {
			value, ok := cmd.Field(f.Key)
			if !ok && f.Letter != "" {
				value, ok = cmd.Field(f.Letter)
			}
			if ok {
				a.add(f.Key, value, remoting.IsSecretKey(f.Key) || f.Key == "value" && remoting.IsSecretKey(named))
			}
		}
	}
	if len(cmd.Body) == 0 {
		return a
	}
	switch protocol.RequestCode(cmd.Code) {
	case protocol.UpdateBrokerConfig, protocol.UpdateNamesrvConfig:
		a.addProperties(cmd.Body)
	case protocol.UpdateAndCreateSubscriptionGroup:
		addBody[body.SubscriptionGroupConfig](a, cmd.Body)
	case protocol.SetMessageRequestMode:
		addBody[body.SetMessageRequestModeRequestBody](a, cmd.Body)
	}
	return a
}

// addProperties adds the lines of a properties text. Of one that can't be read nothing is known that could be shown.
func (a *arguments) addProperties(text []byte) {
	p, err := compat.ParseProperties(text)
	if err != nil {
		a.add("body", "unreadable", false)
		return
	}
	for _, kv := range p.All() {
		a.add(kv.Key, kv.Value, remoting.IsSecretKey(kv.Key))
	}
}

// addBody adds a JSON body as it is understood: keys without a meaning are left out.
func addBody[T any](a *arguments, text []byte) {
	v := new(T)
	if err := compat.Unmarshal(text, v); err != nil {
		a.add("body", "unreadable", false)
		return
	}
	if again, err := compat.Marshal(v); err == nil {
		a.add("body", string(again), false)
	}
}

// mask takes the secrets of the request out of a text that was made of it.
func (a *arguments) mask(text string) string {
	for _, secret := range a.secrets {
		text = strings.ReplaceAll(text, secret, masked)
	}
	return text
}
