//go:build race

package store

// stride is how many of the places at which something fails are passed over for one that is tried: the race detector looks
// for races, and the run without it tries every place.
const stride = 9
