package topics

import (
	"testing"

	"rocketd/compat/configtest"
)

// FuzzFile reads any bytes as topics.json. It demands: no panic; what is read is written in a form that is read as the same.
func FuzzFile(f *testing.F) {
	seed := `{"topicConfigTable":{"a":null,"b":{},"c/d":{},"e":{"topicName":"f","perm":-1,"readQueueNums":-2147483648}},"dataVersion":{}}`
	f.Add([]byte(`{"topicConfigTable":{"a":{"topicFilterType":"SINGL` + "\x7f\xff\xff" + `"}},"dataVersion":{}}`))
	configtest.FuzzFile(f, seed, func(t *testing.T, file string) configtest.Table {
		table := open(t, file, nil)
		return configtest.Table{Decode: table.decode, Encode: table.encode, Content: func() any { return table.Wrapper() }}
	})
}
