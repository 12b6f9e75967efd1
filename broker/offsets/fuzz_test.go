package offsets

import (
	"testing"

	"rocketd/compat/configtest"
)

// FuzzFile reads any bytes as consumerOffset.json. It demands: no panic; what is read is written in a form that is read as the same.
func FuzzFile(f *testing.F) {
	seed := `{"offsetTable":{"T@G":{0:1,-1:-9223372036854775808},"@":{},"T@G@H":null,"x":{1:2}}}`
	configtest.FuzzFile(f, seed, func(t *testing.T, file string) configtest.Table {
		table := open(t, file)
		return configtest.Table{Decode: table.decode, Encode: table.encode, Content: func() any { return table.Wrapper() }, Close: table.Close}
	})
}
