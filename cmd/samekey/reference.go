package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// newReference prints the commands of docs/use/cli.md. A test of the page runs it.
func newReference(env environment) *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print all commands as Markdown",
		Hidden: true,
		Args:   takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			refer(env.stdout, newRoot(env)) // a tree that doesn't run has no commands for help
			return nil
		},
	}
}

// refer prints the commands below cmd, with their exit codes. Help has their flags.
func refer(w io.Writer, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.Hidden {
			continue
		}
		if sub.Runnable() {
			fmt.Fprintf(w, "### `%s`\n%s: `%s`.\n\n", sub.CommandPath(), sub.Short, sub.UseLine())
			common, own := exitMeanings(), make([]string, 0, 4)
			for line := range strings.SplitSeq(sub.Annotations[annotationExits], "\n") {
				code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
				if n, _ := strconv.Atoi(code); common[n] != meaning {
					own = append(own, "**"+code+"** "+meaning)
				}
			}
			if len(own) > 0 {
				fmt.Fprintf(w, "Exit codes: %s.\n\n", strings.Join(own, "; "))
			}
		}
		refer(w, sub)
	}
}
