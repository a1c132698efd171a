package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
)

// Exit codes. exitMeanings has the default meanings; a command sets others by
// exitCodes.
const (
	exitDone   = 0
	exitFailed = 1
	exitWrong  = 2
	exitFound  = 3
)

// exitMeanings returns the default meanings of exit codes.
func exitMeanings() map[int]string {
	return map[int]string{
		exitDone:   "done",
		exitFailed: "failed",
		exitWrong:  "usage error: bad flags or arguments, or no table, Region or credentials",
	}
}

// exitError is an error with an exit code. If err is nil, nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprint(e.err) }
func (e *exitError) Unwrap() error { return e.err }

// exitWith returns an error that ends the command with code.
func exitWith(code int, err error) error { return &exitError{code, err} }

// wrongCall returns a usage error, with the exit code exitWrong.
func wrongCall(err error) error { return exitWith(exitWrong, err) }

func wrongCallf(format string, args ...any) error { return wrongCall(fmt.Errorf(format, args...)) }

// tellExit prints the error of a command, and returns its exit code.
func tellExit(env environment, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitFailed
	if e, ok := errors.AsType[*exitError](err); ok {
		code, err = e.code, e.err
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "%s: %s\n", cmd.CommandPath(), plain.Lines(err.Error()))
	}
	return code
}

// annotationExits names the annotation with a command's exit codes, one per line.
const annotationExits = "exit codes"

const exitCodesUsage = `{{with index .Annotations "` + annotationExits + `"}}
Exit codes:
{{.}}
{{end}}`

// exitCodes puts the exit codes into the help of cmd and into docs/use/cli.md. The map
// own has meanings of codes for cmd. For other codes, exitMeanings has the meanings.
func exitCodes(cmd *cobra.Command, own map[int]string) *cobra.Command {
	all := exitMeanings()
	maps.Copy(all, own)
	lines := make([]string, 0, len(all))
	for _, code := range slices.Sorted(maps.Keys(all)) {
		lines = append(lines, fmt.Sprintf("  %d  %s", code, all[code]))
	}
	cmd.Annotations = map[string]string{annotationExits: strings.Join(lines, "\n")}
	return cmd
}

// takes(least, most) checks that a command has from least to most arguments.
func takes(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return wrongCallf("got %d arguments, want %d; usage: %s", len(args), least, cmd.UseLine())
		case len(args) > most && most == 0:
			return wrongCallf("unexpected argument %q; usage: %s", args[0], cmd.UseLine())
		case len(args) > most:
			return wrongCallf("too many arguments, from %q on; usage: %s", args[most], cmd.UseLine())
		}
		return nil
	}
}
