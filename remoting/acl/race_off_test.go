//go:build !race

package acl

// raceOn: see race_on_test.go.
const raceOn = false
