//go:build !race

package broker

// raceOn: see race_on_test.go.
const raceOn = false
