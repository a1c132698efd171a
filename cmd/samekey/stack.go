package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/samekey/samekey/internal/deploy"
)

var stackCommand = command{name: "stack", summary: "write the template with table, worker, alarms and dashboard", run: runStack}

const stackUsage = `usage: samekey stack [-check | -update] [-standalone] [FILE]

Writes a CloudFormation template with the table, the worker, its queue, alarms and a
dashboard into FILE, by default samekey.yaml. A SAM template nests it. A file that
differs is not overwritten without -update. See docs/deploying.md.

With -check nothing is written: the exit code is 0 if FILE is up to date and 1 if it
differs, and the first line that differs is printed.

Flags:
`

func runStack(_ context.Context, env environment, args []string) int {
	var check, update, standalone bool
	flags := flag.NewFlagSet("samekey stack", flag.ContinueOnError)
	flags.SetOutput(env.stderr)
	flags.Usage = func() {
		fmt.Fprint(env.stderr, stackUsage)
		flags.PrintDefaults()
	}
	flags.BoolVar(&check, "check", false, "compare FILE with this version, and write nothing")
	flags.BoolVar(&update, "update", false, "overwrite FILE")
	flags.BoolVar(&standalone, "standalone", false, "plain CloudFormation without local folders: the worker's program is in a bucket")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if flags.NArg() > 1 || check && update {
		flags.Usage()
		return 2
	}
	file, want := deploy.File, deploy.Nested()
	if flags.NArg() == 1 {
		file = flags.Arg(0)
	}
	if standalone {
		want = deploy.Standalone()
	}
	if err := writeStack(env, file, want, check, update); err != nil {
		fmt.Fprintf(env.stderr, "samekey stack: %v\n", err)
		return 1
	}
	return 0
}

func writeStack(env environment, file, want string, check, update bool) error {
	text, err := os.ReadFile(file)
	missing := errors.Is(err, fs.ErrNotExist)
	// git may have given the lines the ends of Windows.
	got := strings.ReplaceAll(string(text), "\r\n", "\n")
	switch {
	case err != nil && !missing:
		return err
	case !missing && got == want:
		fmt.Fprintln(env.stdout, file+" is up to date")
		return nil
	case missing && check:
		return fmt.Errorf("there is no %s: samekey stack writes it", file)
	case check:
		return fmt.Errorf("%s is another version; %s", file, firstDifference(got, want))
	case !missing && !update:
		return fmt.Errorf("%s is another version, and is left as it is: -update overwrites it; %s", file, firstDifference(got, want))
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // a template, for all who work on the module
		return err
	}
	fmt.Fprintln(env.stdout, "wrote "+file)
	return nil
}

// firstDifference tells the first line in which two texts differ.
func firstDifference(got, want string) string {
	have, must := strings.Split(got, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(have)-1 && i < len(must)-1 && have[i] == must[i] {
		i++
	}
	return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, have[i], must[i])
}
