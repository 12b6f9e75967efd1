//go:build !race

package store

// stride: every place is tried.
const stride = 1
