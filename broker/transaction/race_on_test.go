//go:build race

package transaction

// raceOn: the race detector makes everything many times slower.
const raceOn = true
