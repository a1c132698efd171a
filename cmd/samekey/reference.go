package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// newReference makes the hidden command that prints the commands for docs/use/cli.md. A
// test of the page runs the command.
func newReference(env environment) *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print all commands as Markdown",
		Hidden: true,
		Args:   takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			refer(env.stdout, newRoot(env)) // this tree never runs, so cobra adds no help and completion commands to it
			return nil
		},
	}
}

// refer prints the commands below cmd.
func refer(w io.Writer, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		if sub.Hidden {
			continue
		}
		if sub.Runnable() {
			fmt.Fprintf(w, "### `%s`\n%s: `%s`.\n\n", sub.CommandPath(), sub.Short, sub.UseLine())
		}
		refer(w, sub)
	}
}
