package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/samekey/samekey/internal/scaffold"
)

var initCommand = command{name: "init", summary: "write a handler, its test, a template and CI into your module", run: runInit}

const initUsage = `usage: samekey init [-module PATH] [--check]

Writes into the current folder: a handler that is safe to retry, with its test, a SAM
template, samconfig.toml, a Makefile and a CI workflow. A folder without a go.mod
becomes a module. No file is overwritten, and after an error nothing is left behind.

With --check nothing is written: a diff shows the changes of a newer version of
samekey. The exit code is then 0 for none, 1 for some, 2 for an error.

Flags:
`

// envReplace names a checkout that takes the place of the released module, in tests of
// this repository.
const envReplace = "SAMEKEY_INIT_REPLACE"

func runInit(ctx context.Context, env environment, args []string) int {
	var opts scaffold.Options
	var check bool
	fs := flag.NewFlagSet("samekey init", flag.ContinueOnError)
	fs.SetOutput(env.stderr)
	fs.Usage = func() {
		fmt.Fprint(env.stderr, initUsage)
		fs.PrintDefaults()
	}
	fs.StringVar(&opts.Module, "module", "", "`PATH` of the new module; default the folder's name")
	fs.BoolVar(&check, "check", false, "show what this version would change, and write nothing")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(env.stderr, "samekey init: %q is not a flag\n", fs.Arg(0))
		return 2
	}
	if check {
		return checkInit(ctx, env)
	}
	opts.Version, opts.Replace = ownVersion(), env.getenv(envReplace)
	result, err := scaffold.Init(ctx, opts)
	if err != nil {
		fmt.Fprintf(env.stderr, "samekey init: %v\n", err)
		return 1
	}
	tellInit(env, result)
	return 0
}

func tellInit(env environment, result scaffold.Result) {
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
		fmt.Fprintln(env.stdout, "Files that were left alone may need parts of those that samekey init writes in an empty folder.")
	}
	if len(result.Created) > 0 {
		fmt.Fprint(env.stdout, `
Run it:  go tool samekey local -watch
Call it: curl -i localhost:3000/orders -H 'Content-Type: application/json' -H 'Idempotency-Key: 1' -d '{"item":"tea","quantity":2}'
`)
	}
}

func checkInit(ctx context.Context, env environment) int {
	changes, err := scaffold.Check(ctx, ".", env.stdout)
	switch {
	case err != nil:
		fmt.Fprintf(env.stderr, "samekey init: %v\n", err)
		return 2
	case changes:
		fmt.Fprintln(env.stderr, "samekey init: take of the diff what you want, then run samekey init, which overwrites nothing and remembers this version")
		return 1
	}
	return 0
}

// ownVersion is the released version of this program, or "latest" for a build of a
// checkout.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasPrefix(info.Main.Version, "v") || strings.Contains(info.Main.Version, "+") {
		return "latest"
	}
	return info.Main.Version
}
