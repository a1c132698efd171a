// Command operators changes the code of the library at places that nobody chose, and
// looks whether a test fails: conditions, comparisons, constants, statements, operands,
// cases and returned errors (see find.go). Command mutants breaks chosen rules; this one
// says of the rest how much of it is held.
//
//	go run -C proof ./operators                  # 1,000 of them
//	go run -C proof ./operators -n 60 -seed 7    # another sample
//	go run -C proof ./operators -n 0 -only ^seal # all of a package
//	go run -C proof ./operators -list -n 0       # without a run
//
// All mutants are in one build: each changed place asks a switch, which reads the number
// of its mutant from the environment (see switch.go). So the tests of a package are
// built once. Each that make test runs is run alone once, and the switch notes the places that it reaches; a
// mutant is played by the tests that reach it, the fastest first. The checkout is never
// written to: the compiler gets the changed files in its stead (go build -overlay).
//
// Mutants that change nothing are in equivalent.txt, by the text of their line, with a
// reason each. They are not drawn. The command exits with 1 if fewer than -least percent
// of the mutants are killed, if one survives where none may (see strict), or if a line of
// equivalent.txt fits nothing.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"regexp"
	"runtime"
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

// use is what the flags ask for.
type use struct {
	only    *regexp.Regexp
	sample  int
	pkgs    int
	seed    string
	own     bool
	list    bool
	workers int
	limit   time.Duration
	least   float64
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var u use
	flags := flag.NewFlagSet("operators", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "a regular expression: the mutants to play, as they are printed; all by default")
	flags.IntVar(&u.sample, "n", 1000, "how many mutants are drawn; 0: all")
	flags.IntVar(&u.pkgs, "packages", 0, "draw so many packages first, larger ones more often, and mutants of these only: fewer tests have to be built; 0: of all")
	flags.StringVar(&u.seed, "seed", "1", "of the draw, any text; commit: the hash of the checkout's commit")
	flags.BoolVar(&u.own, "own", false, "play a package's mutants by its own tests only, to see sooner which of them they miss")
	flags.BoolVar(&u.list, "list", false, "print the mutants and run nothing")
	flags.IntVar(&u.workers, "workers", 2*runtime.NumCPU(), "tests at once: most of them wait for a database")
	flags.DurationVar(&u.limit, "limit", time.Minute, "the tests of a mutant, by the time that they take without one: the fastest that fit")
	flags.Float64Var(&u.least, "least", 95, "the share that must be killed, in percent")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	var err error
	if u.only, err = regexp.Compile(*only); err != nil || u.workers < 1 || flags.NArg() > 0 {
		fmt.Fprintln(stderr, "operators: wrong use:", err, flags.Args())
		return 2
	}
	if err := u.do(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "operators:", err)
		return 1
	}
	return 0
}

func (u *use) do(ctx context.Context, stdout, stderr io.Writer) error {
	began := time.Now()
	root, err := harness.Root(ctx)
	if err != nil {
		return err
	}
	all, err := products(ctx, root)
	if err != nil {
		return err
	}
	listed, err := equivalents(root)
	if err != nil {
		return err
	}
	todo, same, err := split(all, listed)
	if err != nil {
		return err
	}
	total := len(todo)
	todo = slices.DeleteFunc(todo, func(m *mutant) bool { return !u.only.MatchString(m.String()) })
	if u.seed == "commit" {
		if u.seed, err = harness.Commit(ctx, root); err != nil {
			return err
		}
	}
	todo = u.draw(todo)
	for _, p := range all {
		p.own = u.own
	}
	if u.list {
		for _, m := range todo {
			fmt.Fprintf(stdout, "%v\n\t%s\n", m, m.source)
		}
		fmt.Fprintf(stdout, "%d of %d mutants, and %d that change nothing\n", len(todo), total, same)
		return nil
	}
	db, err := dynamotest.Find(ctx)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // in memory; nothing to lose
	tmp, err := os.MkdirTemp("", "operators-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
	p := &player{
		root: root, tmp: tmp, workers: u.workers, limit: u.limit, progress: stderr,
		env: append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+db.Endpoint, "REQUIRE_DYNAMODB=1", "SAMEKEY_BUILT="+tmp),
	}
	if p.left, err = harness.MakeList(root, "LONG"); err != nil {
		return err
	}
	if p.overlay, err = overlay(root, tmp, all); err != nil {
		return err
	}
	before, err := status(ctx, root)
	if err != nil {
		return err
	}
	dirs := testersOf(todo)
	if err := p.build(ctx, dirs); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%d of %d mutants; the tests of %d packages are built after %s\n", len(todo), total, len(dirs), time.Since(began).Round(time.Second))
	if err := p.survey(ctx, dirs); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "it is known after %s which test reaches which of them\n", time.Since(began).Round(time.Second))
	results := p.playAll(ctx, todo)
	after, err := status(ctx, root)
	if err == nil && before != after {
		err = fmt.Errorf("a mutant wrote to the checkout:\n%s", after)
	}
	return errors.Join(err, u.report(stdout, results, time.Since(began)))
}

// draw draws a sample, the same for a seed and a checkout.
func (u *use) draw(ms []*mutant) []*mutant {
	rnd := rand.New(rand.NewChaCha8(sha256.Sum256([]byte(u.seed))))
	ms = slices.Clone(ms)
	if u.sample > 0 {
		rnd.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
	}
	if u.pkgs > 0 {
		drawn := make(map[*pkg]bool)
		ms = slices.DeleteFunc(ms, func(m *mutant) bool {
			if len(drawn) < u.pkgs {
				drawn[m.pkg] = true
			}
			return !drawn[m.pkg]
		})
	}
	if u.sample > 0 {
		ms = ms[:min(u.sample, len(ms))]
	}
	return ms
}

// status is what git says of changed files.
func status(ctx context.Context, root string) (string, error) {
	return harness.Output(ctx, "git", "-C", root, "status", "--porcelain")
}
