package main

import (
	"os"
	"strings"
)

// inForeground reports whether the terminal sends a typed interrupt to this process's group. It
// compares fields 5 (the group) and 8 (the terminal's foreground group) of /proc/self/stat.
func inForeground() bool {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return false
	}
	// Field 2, the command's name in parentheses, may itself contain parentheses and spaces. So
	// field 3 is the first one after the last parenthesis.
	rest := string(b)[strings.LastIndexByte(string(b), ')')+1:]
	f := strings.Fields(rest)
	return len(f) > 5 && f[2] == f[5]
}
