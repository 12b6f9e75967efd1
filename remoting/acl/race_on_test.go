//go:build race

package acl

// raceOn: the race detector makes sync.Pool drop things, so allocations can't be counted.
const raceOn = true
