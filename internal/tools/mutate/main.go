// Command mutate breaks one rule of the code at a time and demands that a test
// fails: a fence that no test misses is not known to stand.
//
//	go run ./internal/tools/mutate              # everything
//	go run ./internal/tools/mutate -only '^Ack' # the rules that match
//	go run ./internal/tools/mutate -list        # the table, without a run
//
// The table is in the files table_*.go, a line for each mutant: a function or
// another declaration, a snippet of it, the snippet's replacement, and the fastest
// test that has to notice. The snippet must be there exactly once, the mutant must
// compile, and the tests must pass without it; anything else is an error of the
// table. Layout, comments, files and the names of local variables don't matter
// (see mutant). The checkout is never written to: the compiler gets the changed
// file in its stead (go build -overlay).
//
// Tests that need DynamoDB Local share one, found or started as package
// dynamotest does. The command exits with 1 if a mutant survives or the table is
// wrong, and with 2 on wrong use.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "a regular expression: the rules to break; all by default")
	list := flags.Bool("list", false, "print the table and run nothing")
	workers := flags.Int("workers", 2, "mutants at once")
	limit := flags.Duration("timeout", 3*time.Minute, "for the tests of one mutant")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	wanted, err := regexp.Compile(*only)
	if err != nil || *workers < 1 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "mutate: wrong use:", err, flags.Args())
		return 2
	}
	if err := all(ctx, wanted, *list, *workers, *limit, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 1
	}
	return 0
}

func all(ctx context.Context, wanted *regexp.Regexp, list bool, workers int, limit time.Duration, stdout, stderr io.Writer) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	todo := slices.DeleteFunc(table(), func(m mutant) bool { return !wanted.MatchString(m.rule) })
	if err := errors.Join(check(root, todo), covers(table())); err != nil || list {
		printTable(stdout, todo)
		return err
	}
	db, err := dynamotest.Find(ctx)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // in memory; nothing to lose
	tmp, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
	r := &runner{
		root: root, tmp: tmp, limit: limit, workers: workers, progress: stderr,
		env: append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+db.Endpoint, "REQUIRE_DYNAMODB=1"),
	}
	begun := time.Now()
	if err := r.baseline(ctx, todo); err != nil {
		return fmt.Errorf("without any mutant: %w", err)
	}
	results := r.tryAll(ctx, todo)
	// A database that died on the way would have failed every test.
	err = r.baseline(ctx, todo[len(todo)-1:])
	if err != nil {
		err = fmt.Errorf("after the mutants, without any: %w", err)
	}
	return errors.Join(err, printResults(stdout, results, time.Since(begun)))
}

// moduleRoot is the folder of go.mod.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	mod := string(bytes.TrimSpace(out))
	if err != nil || !strings.HasSuffix(mod, "go.mod") {
		return "", fmt.Errorf("go env GOMOD: %q, %w", mod, err)
	}
	return filepath.Dir(mod), nil
}
