package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// doubleDashed puts a second dash before the names of flags that have only one, as
// programs on Go's own flag package take them. samekey has no flag of one letter but
// -h, so a single dash can mean nothing else.
func doubleDashed(root *cobra.Command, args []string) []string {
	out := append([]string{}, args...) // not nil: cobra would take the process's own
	if len(args) == 0 || strings.HasPrefix(args[0], "__") {
		return out // the shell's, for its completion
	}
	cmd, _, _ := root.Find(args) // root itself, if it has no such command
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
