package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/scaffold"
)

// programPath is the import path of this program.
const programPath = "github.com/samekey/samekey/cmd/samekey"

func newInit(env environment) *cobra.Command {
	var opts scaffold.Options
	var check bool
	cmd := &cobra.Command{
		Use:   "init [--module PATH] [--example NAME] [--check]",
		Short: "Create an application: handler, test, template and CI",
		Long: `Creates an application in the current folder: a handler that is safe to retry, its test, a
SAM template, samconfig.toml, a Makefile and a CI workflow. A folder without a go.mod
becomes a module. init overwrites no file, and leaves nothing behind if it fails.

With --check, init writes nothing. It prints the diff between your files and the files of
this version of samekey.`,
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return checkInit(cmd.Context(), env)
			}
			opts.Version = released(version())
			result, err := scaffold.Init(cmd.Context(), opts)
			if err == nil {
				tellInit(env, result, "go run "+programPath+"@"+opts.Version)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&opts.Module, "module", "", "`PATH` of the new module (default: the folder's name)")
	cmd.Flags().StringVar(&opts.Example, "example", "", "instead of a first handler, create the example application `NAME`: "+strings.Join(scaffold.Examples(), ", "))
	cmd.Flags().BoolVar(&check, "check", false, "show what this version would change, without writing")
	return exitCodes(cmd, map[int]string{exitFailed: "failed; with --check: the files differ", exitWrong: "usage error; with --check also: failed"})
}

func tellInit(env environment, result scaffold.Result, command string) {
	for _, f := range []struct {
		did   string
		files []string
	}{{"created", result.Created}, {"left alone", result.LeftAlone}, {"up to date", result.Unchanged}} {
		for _, name := range f.files {
			fmt.Fprintf(env.stdout, "%-11s %s\n", f.did, name)
		}
	}
	if result.Required {
		fmt.Fprintf(env.stdout, "%-11s go.mod of module %s\n", "completed", result.Module)
	}
	if len(result.LeftAlone) > 0 {
		fmt.Fprintln(env.stdout, "Files that were left alone may lack parts that this version creates. To see these parts, run samekey init in an empty folder.")
	}
	if len(result.Old) > 0 {
		fmt.Fprintf(env.stdout, "These modules are too old for today's aws-sdk-go-v2: they compile, but every call to AWS fails. Upgrade them: go get %s\n", strings.Join(result.Old, "@latest ")+"@latest")
	}
	others := func(name string) bool {
		return name == "template.yaml" || name == "Makefile" || strings.HasPrefix(name, "cmd/")
	}
	switch {
	case len(result.Created) > 0 && slices.ContainsFunc(result.LeftAlone, others): // the user's own files may lack make local and the route /orders
		fmt.Fprintf(env.stdout, "\nRun it:  %s local --watch\n", command)
	case len(result.Created) > 0 && result.Example == "checkout":
		fmt.Fprintf(env.stdout, `
Run it:     make local
Examine it: TOKEN='Bearer tea' OTHER='Bearer milk' %s check --contract acp --yes --header-env Authorization=TOKEN --other-caller-env Authorization=OTHER --body '{"items":[{"id":"tea","quantity":1},{"id":"cup","quantity":2}]}' http://localhost:3000/checkout_sessions
`, command)
	case len(result.Created) > 0:
		fmt.Fprint(env.stdout, `
Run it:  make local
Call it: curl -i localhost:3000/orders -H 'Authorization: Bearer tea' -H 'Content-Type: application/json' -H 'Idempotency-Key: 1' -d '{"item":"tea","quantity":2}'
`)
	}
}

func checkInit(ctx context.Context, env environment) error {
	changes, err := scaffold.Check(ctx, ".", env.stdout)
	switch {
	case err != nil:
		return exitWith(exitWrong, err)
	case changes:
		return errors.New("copy the changes that you want, then run samekey init, which overwrites nothing and records this version")
	}
	return nil
}

// released(version) returns the version of a release, and "latest" for a build from a checkout.
func released(version string) string {
	if !strings.HasPrefix(version, "v") || strings.Contains(version, "+") {
		return "latest"
	}
	return version
}
