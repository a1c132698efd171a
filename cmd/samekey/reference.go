package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// newReference makes the hidden command reference, which prints the commands as docs/use/cli.md
// lists them. A test compares the page with this output.
func newReference(env environment) *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print all commands as Markdown",
		Hidden: true,
		Args:   takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			refer(env.stdout, newRoot(env)) // the new root never runs, so cobra doesn't add the commands help and completion to the list
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
