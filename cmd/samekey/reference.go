package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
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
			root := newRoot(bare)                           // a tree that doesn't run has no flags and commands for help
			uses, r := make(map[string]int), reference{env.stdout, make(map[string]string)}
			walk(root, func(c *cobra.Command) {
				c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
					if f.Hidden {
						return
					}
					if uses[row(f)]++; uses[row(f)] > max(1, uses[r.shared[f.Name]]) {
						r.shared[f.Name] = row(f)
					}
				})
			})
			fmt.Fprint(r.out, "### Flags of several commands\n\n")
			r.table(slices.Sorted(maps.Values(r.shared)))
			for _, g := range groups {
				fmt.Fprintf(r.out, "*%s*: %s.\n\n", g.name, flagList(g.flags))
			}
			walk(root, r.refer)
			return nil
		},
	}
}

// walk visits the commands that the reference tells.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range cmd.Commands() {
		if sub.Hidden {
			continue
		}
		if sub.Runnable() {
			visit(sub)
		}
		walk(sub, visit)
	}
}

// groups are flags that commands have together.
var groups = []struct {
	name  string
	flags []string
}{
	{"table", []string{"endpoint-url", "namespace", "profile", "region", "table"}},
	{"record", []string{"key", "key-route", "keys-from", "no-scan", "pages", "progress", "scope", "segments", "service", "since"}},
	{"decision", []string{"by", "dry-run", "yes"}},
}

func flagList(names []string) string { return "`--" + strings.Join(names, "`, `--") + "`" }

// grouped names shared flags: those of a group by its name.
func grouped(shared []string) string {
	var named []string
	for _, g := range groups {
		missing := func(name string) bool { return !slices.Contains(shared, name) }
		if !slices.ContainsFunc(g.flags, missing) {
			named = append(named, "*"+g.name+"*")
			shared = slices.DeleteFunc(shared, func(name string) bool { return slices.Contains(g.flags, name) })
		}
	}
	if len(shared) > 0 {
		named = append(named, flagList(shared))
	}
	return strings.Join(named, ", ")
}

// reference prints commands. A flag that several commands share is told once.
type reference struct {
	out    io.Writer
	shared map[string]string // rows by the flag's name
}

func (r reference) refer(cmd *cobra.Command) {
	fmt.Fprintf(r.out, "### `%s`\n%s.\n\n", cmd.CommandPath(), cmd.Short)
	fmt.Fprintf(r.out, "```\n%s\n```\n\n", cmd.UseLine())
	var own, shared []string
	cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden:
		case r.shared[f.Name] == row(f):
			shared = append(shared, f.Name)
		default:
			own = append(own, row(f))
		}
	})
	r.table(own)
	if len(shared) > 0 {
		fmt.Fprintf(r.out, "Also %s.\n\n", grouped(shared))
	}
	common, all := exitMeanings(), make([]string, 0, 4)
	for line := range strings.SplitSeq(cmd.Annotations[annotationExits], "\n") {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if n, _ := strconv.Atoi(code); common[n] != meaning {
			all = append(all, "**"+code+"** "+meaning)
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(r.out, "Exit codes: %s.\n\n", strings.Join(all, "; "))
	}
}

// table prints rows of flags, if there are any.
func (r reference) table(rows []string) {
	if len(rows) > 0 {
		fmt.Fprintf(r.out, "| flag | meaning |\n| --- | --- |\n%s\n\n", strings.Join(rows, "\n"))
	}
}

// row is a flag as a row of a table.
func row(f *pflag.Flag) string {
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
	return fmt.Sprintf("| `--%s%s` | %s%s |", f.Name, kind, strings.ReplaceAll(usage, "|", `\|`), preset)
}
