//go:build !linux

package vfs

func (osFS) createWhole(string, int64) (File, error) { return nil, errNotWhole }
