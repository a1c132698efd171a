package main

import (
	"os"
	"strings"
)

// inForeground reports whether this process is of the group that its terminal
// sends interrupts to: whether fields 5 (the group) and 8 (the terminal's
// foreground group) of /proc/self/stat are equal.
func inForeground() bool {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return false
	}
	// The name of the command, field 2, may hold anything; after its last
	// parenthesis comes field 3.
	rest := string(b)[strings.LastIndexByte(string(b), ')')+1:]
	f := strings.Fields(rest)
	return len(f) > 5 && f[2] == f[5]
}
