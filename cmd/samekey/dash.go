package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// doubleDashed turns -flag into --flag, because samekey accepts both, as Go's flag
// package does. A flag of one letter, such as -h, isn't changed.
func doubleDashed(root *cobra.Command, args []string) []string {
	out := append([]string{}, args...) // not nil: for nil, cobra uses os.Args
	if len(args) == 0 || strings.HasPrefix(args[0], "__") {
		return out // no arguments, or the shell's completion script has called samekey
	}
	cmd, _, _ := root.Find(args) // cmd is root if args name no command
	value := false               // true if the next argument is the value of a flag
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
