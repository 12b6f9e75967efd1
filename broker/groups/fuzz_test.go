package groups

import (
	"testing"

	"rocketd/compat/configtest"
)

// FuzzFile reads any bytes as subscriptionGroup.json. It demands: no panic; what is read is written in a form that is read as the same.
func FuzzFile(f *testing.F) {
	seed := `{"subscriptionGroupTable":{"a":null,"b":{},"c":{"groupName":"d"}},"dataVersion":{"counter":-1}}`
	configtest.FuzzFile(f, seed, func(t *testing.T, file string) configtest.Table {
		table := open(t, file, new(bool))
		return configtest.Table{Decode: table.decode, Encode: table.encode, Content: func() any { return table.Wrapper() }}
	})
}
