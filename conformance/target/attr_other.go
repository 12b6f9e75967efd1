//go:build !linux

package target

import "syscall"

// processAttr puts a child into a group of its own. Only Linux can tie a child's life to its parent's.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGKILL) }

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }
