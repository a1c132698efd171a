// Command sealed runs the acceptance suite with encryption on, and then looks for the
// contents of all records of all tests in everything that was written to the tables of
// records, and in all logs.
//
//	go run -C proof ./sealed            # everything
//	go run -C proof ./sealed -short     # the part of CI
//
// The compiler gets changed files in the stead of some of the repository (go build
// -overlay), in which each store without a sealer has one, and notes the contents that
// it is asked to write, and each logger notes its lines (package suite). All writes
// go to DynamoDB Local through a tap, so that deleted items count as well. A control run
// of each package without encryption must find contents, or the search is blind.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/proof/sealed/suite"
)

// part is a package of the suite.
type part struct {
	pkg string
	// skip are tests that look at the plain form of items, or that test encryption with
	// sealers of their own, and records without.
	skip string
	// control are the tests of the control run. Each writes contents.
	control string
	tests   string // "" for all
	memory  bool   // its records are in memory: only the logs are looked at
	short   string // the tests of -short; "" for none
}

func parts() []part {
	const few = "^TestConformance$/^DynamoDB_Local$/^engine_(replay|bodies|take-over|failure)$"
	return []part{
		{
			pkg: "./dynamo", control: few, short: few,
			// The second line of tests edits contents by hand, or looks at their plain form.
			skip: "Seal|ForAPlainRecord|SwitchingOnAndOff|^TestWhoAndWhere|^TestAltered|^TestNoDataKey$|^TestDataKeyCannot|Closed|WithoutTheKey|" +
				"EditedRecord|SpoiltCompanions|ForgedHeaders|BodiesAreCompressed|ThousandDuplicates|^TestFormat$|^TestRoomForARequestBesidePhases$",
		},
		{
			pkg: "./internal/background/stream", control: "^Test(JobWritesWhoseAnswerIsLost|SweepActsInTheStreamsStead)$",
			// The second line of tests gives items another operation's id by hand, which makes
			// their contents corrupt; Browse leaves contents closed.
			skip: "Seal|^TestAltered|^TestCompleterTouchesNothingElse$|" +
				"LetGo$|RemovedRecordsJobsAreDelivered|^Test(Browse|ReadersInflateNoBody|BatchIsReadInParts|SweepEmptiesWhatNobodyDecides|RetryOfATicket)$",
		},
		{pkg: "./examples/rides", skip: "^TestPlainRecordsHaveSecrets$", control: "^TestPlainRecordsHaveSecrets$", short: "."},
		{pkg: "./proof/calls", control: ".", short: "."},
		{pkg: "./proof/tenants", control: "^TestTenantsOnDynamoDB$"},
		{pkg: "./lambda", memory: true, skip: "^TestDependencies$"}, // the HTTP suites
		// A key alone is looked for under the callers that records name: a sealed one names none.
		// The others have a table in memory, and sealers of their own.
		{pkg: "./cmd/samekey/internal/ui", skip: "^Test(Acts|Shown|Finds|RowsOfATable)$", control: "Settle|Retry", short: "."},
		{
			pkg: "./cmd/samekey", skip: "Seal|SettlingAPlain|GetFindsWhatIsThere|KeyWithoutNamespace", control: "GetBy|Settle",
			// The other commands have no table.
			tests: "Names|Inspect|OnCall|GetBy|Settle|Moved|Release|Forget|Retry|Redrive|Worst|UnknownLayout|DoctorOn",
		},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out io.Writer) int {
	flags := flag.NewFlagSet("sealed", flag.ContinueOnError)
	short := flags.Bool("short", false, "a part, in minutes")
	only := flags.String("only", "", "one package, such as ./dynamo")
	tests := flags.String("run", "", "tests in the place of those of an encrypted run")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	err := all(ctx, *short, *only, *tests, out)
	if err != nil {
		fmt.Fprintln(out, "sealed:", err)
		return 1
	}
	return 0
}

func all(ctx context.Context, short bool, only, tests string, out io.Writer) error {
	root, err := filepath.Abs("..") // the library is the module above
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "sealed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the run's own folder
	overlay, err := changed(root, tmp)
	if err != nil {
		return err
	}
	var failed []string
	for i, p := range parts() {
		if short && p.short == "" || only != "" && only != p.pkg {
			continue
		}
		db, err := dynamotest.Find(ctx) // of its own: it gets slower with each stream
		if err != nil {
			return err
		}
		for _, plain := range []bool{true, false} {
			if plain && p.memory {
				continue
			}
			r := &round{part: p, plain: plain, root: root, overlay: overlay, endpoint: db.Endpoint, dir: filepath.Join(tmp, fmt.Sprint(i, plain))}
			if r.tests = p.control; !plain {
				if r.tests = cmp.Or(tests, p.tests, "."); short {
					r.tests = p.short
				}
			}
			begun := time.Now()
			verdict, err := r.run(ctx)
			if err != nil {
				failed = append(failed, p.pkg)
				verdict = "FAILED: " + err.Error()
			}
			name := map[bool]string{true: "plain, for control", false: "encrypted"}[plain]
			fmt.Fprintf(out, "%-22s %-18s %4.0f s  %s\n", p.pkg, name, time.Since(begun).Seconds(), verdict)
		}
		if err := db.Close(); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("not as it should be: %s", strings.Join(failed, ", "))
	}
	return nil
}

// round is one run of a package's tests.
type round struct {
	part
	plain                        bool
	tests                        string
	root, overlay, endpoint, dir string
}

func (r *round) run(ctx context.Context) (verdict string, err error) {
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return "", err
	}
	tap, err := openTap(r.endpoint, filepath.Join(r.dir, "written"))
	if err != nil {
		return "", err
	}
	args := []string{"test", "-count=1", "-timeout=30m", "-vet=off", "-overlay=" + r.overlay, "-run=" + r.tests} // no vet: the overlay's package has no folder
	if r.skip != "" && !r.plain {
		args = append(args, "-skip="+r.skip)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "-v", ".")...)
	cmd.Dir = filepath.Join(r.root, r.pkg) // the package may be of any module
	cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+tap.url, "REQUIRE_DYNAMODB=1", "GOFLAGS=-overlay="+r.overlay, suite.EnvDir+"="+r.dir)
	if r.plain {
		cmd.Env = append(cmd.Env, suite.EnvPlain+"=1")
	}
	said, ran := cmd.CombinedOutput()
	tapped := tap.close()
	if err := errors.Join(ran, tapped); err != nil {
		whole, werr := os.CreateTemp("", "sealed-*.log")
		if werr == nil {
			_, werr = whole.Write(said)
			werr = errors.Join(werr, whole.Close())
		}
		return "", fmt.Errorf("go test %s: %w (all it said: %s)\n%s", r.pkg, errors.Join(err, werr), whole.Name(), failures(said))
	}
	return r.judge(said)
}

// failures are the lines that name failed tests, and the last lines.
func failures(said []byte) string {
	lines := strings.Split(string(said), "\n")
	var b strings.Builder
	for i, line := range lines {
		if strings.Contains(line, "--- FAIL") || i > len(lines)-20 {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
