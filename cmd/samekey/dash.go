package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// doubleDashed puts a second dash before flag names with a single dash, which Go's
// flag package accepts. Except for -h, samekey has no flags of one letter.
func doubleDashed(root *cobra.Command, args []string) []string {
	out := append([]string{}, args...) // not nil: cobra would take the process's own
	if len(args) == 0 || strings.HasPrefix(args[0], "__") {
		return out // a call of the shell's completion
	}
	cmd, _, _ := root.Find(args) // root, if there is no such command
	value := false               // whether the flag before takes this argument as its value
	for i, a := range out {
		bare := strings.TrimLeft(a, "-")
		switch {
		case value:
			value = false
			continue
		case a == "--":
			return out
		case bare == a || len(bare) < 2:
			continue
		}
		if !strings.HasPrefix(a, "--") {
			out[i] = "-" + a
		}
		name, _, given := strings.Cut(bare, "=")
		flag := cmd.Flag(name)
		value = flag != nil && flag.NoOptDefVal == "" && !given
	}
	return out
}
