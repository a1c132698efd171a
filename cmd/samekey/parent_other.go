//go:build !linux

package main

// interrupted is known on Linux only; elsewhere a parent has to end.
func interrupted(int) bool { return false }
