// Command mutate breaks one rule of the code at a time and demands that a test
// fails: a fence that no test misses is not known to stand.
//
//	go run -C proof ./mutants              # everything
//	go run -C proof ./mutants -only '^Ack' # the rules that match
//	go run -C proof ./mutants -list        # the table, without a run
//
// The table is in the files table_*.go, a line for each mutant: a function or
// another declaration, a snippet of it, the snippet's replacement, and the fastest
// test that has to notice. A mutant whose snippet isn't in the code any more is left
// out, and named. The mutant must compile, and the tests must pass without it;
// anything else is an error of the table. Layout, comments, files and the names of local variables don't matter
// (see mutant). The checkout is never written to: the compiler gets the changed
// file in its stead (go build -overlay).
//
// Tests that need DynamoDB Local share one, found or started as package
// dynamotest does. The command exits with 1 if a mutant survives or the table is
// wrong, and with 2 on wrong use.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/proof/internal/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var u use
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "a regular expression: the rules to break; all by default")
	flags.BoolVar(&u.list, "list", false, "print the table and run nothing")
	flags.IntVar(&u.workers, "workers", 2, "mutants at once")
	flags.DurationVar(&u.limit, "timeout", 3*time.Minute, "for the tests of one mutant")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	var err error
	if u.wanted, err = regexp.Compile(*only); err != nil || u.workers < 1 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "mutate: wrong use:", err, flags.Args())
		return 2
	}
	if err := u.do(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 1
	}
	return 0
}

// use is what the flags ask for.
type use struct {
	wanted  *regexp.Regexp
	list    bool
	workers int
	limit   time.Duration
}

func (u *use) do(ctx context.Context, stdout, stderr io.Writer) error {
	root, err := harness.Root(ctx)
	if err != nil {
		return err
	}
	todo := slices.DeleteFunc(table(), func(m mutant) bool { return !u.wanted.MatchString(m.rule) })
	todo = fitting(root, todo, stderr)
	if u.list {
		printTable(stdout, todo)
		return nil
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
		builder: builder{root: root, env: append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+db.Endpoint, "REQUIRE_DYNAMODB=1")},
		tmp:     tmp, limit: u.limit, workers: u.workers, progress: stderr,
	}
	fmt.Fprintf(stderr, "%d of %d mutants\n", len(todo), len(table()))
	return r.breakAll(ctx, todo, stdout)
}

// breakAll demands that the tests of all of ms pass without these and fail with them.
func (r *runner) breakAll(ctx context.Context, ms []mutant, stdout io.Writer) error {
	begun := time.Now()
	if err := r.baseline(ctx, ms); err != nil {
		return fmt.Errorf("without any mutant: %w", err)
	}
	results := r.tryAll(ctx, ms)
	// A database that died on the way would have failed every test.
	err := r.baseline(ctx, ms[len(ms)-1:])
	if err != nil {
		err = fmt.Errorf("after the mutants, without any: %w", err)
	}
	if r.slow > 0 {
		fmt.Fprintf(r.progress, "%d mutants changed what their package offers its importers: the go command has built them\n", r.slow)
	}
	return errors.Join(err, printResults(stdout, results, time.Since(begun)))
}
