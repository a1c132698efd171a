package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newReference prints docs/use/cli.md's tables. A test of the page runs it.
func newReference(env environment) *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print the reference of all commands as Markdown",
		Hidden: true,
		Args:   takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bare := env
			bare.getenv = func(string) string { return "" } // no defaults of this machine
			root := newRoot(bare)
			for _, c := range root.Commands() {
				refer(env, c)
			}
			return nil
		},
	}
}

func refer(env environment, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	if cmd.Runnable() {
		fmt.Fprintf(env.stdout, "### `%s`\n%s.\n\n", cmd.CommandPath(), cmd.Short)
		fmt.Fprintf(env.stdout, "```\n%s\n```\n\n", cmd.UseLine())
		referFlags(env, cmd)
		if exits := cmd.Annotations[annotationExits]; exits != "" {
			all := make([]string, 0, 4)
			for line := range strings.SplitSeq(exits, "\n") {
				code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
				all = append(all, "**"+code+"** "+meaning)
			}
			fmt.Fprintf(env.stdout, "Exit codes: %s.\n\n", strings.Join(all, "; "))
		}
	}
	for _, sub := range cmd.Commands() {
		refer(env, sub)
	}
}

func referFlags(env environment, cmd *cobra.Command) {
	rows := 0
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if rows++; rows == 1 {
			fmt.Fprint(env.stdout, "| flag | meaning |\n| --- | --- |\n")
		}
		kind, usage := pflag.UnquoteUsage(f)
		if kind != "" {
			kind = " " + kind
		}
		preset := ""
		switch f.DefValue {
		case "", "false", "0", "0s", "[]":
		default:
			preset = "; default `" + f.DefValue + "`"
		}
		fmt.Fprintf(env.stdout, "| `--%s%s` | %s%s |\n", f.Name, kind, strings.ReplaceAll(usage, "|", `\|`), preset)
	})
	if rows > 0 {
		fmt.Fprintln(env.stdout)
	}
}
