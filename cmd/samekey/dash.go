package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// doubleDashed turns -flag into --flag: programs with Go's flag package accept both. Except for -h,
// samekey has no one-letter flags.
func doubleDashed(root *cobra.Command, args []string) []string {
	out := append([]string{}, args...) // not nil: for nil, cobra uses os.Args
	if len(args) == 0 || strings.HasPrefix(args[0], "__") {
		return out // a call by the shell's completion
	}
	cmd, _, _ := root.Find(args) // root, if there is no such command
	value := false               // whether this argument is the value of the flag before it
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
