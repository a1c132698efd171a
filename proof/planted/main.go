// Command planted plants bugs, one at a time, and has the proofs look for each: it prints which
// proof finds which bug, and after how many seconds.
//
//	go run -C proof ./planted                          # the whole table (hours)
//	go run -C proof ./planted -bug claim -proof mix    # some of it, by regular expressions
//
// The compiler gets changed files in the stead of the repository's (go build -overlay), also
// in the programs that a proof builds. A proof must pass without a bug, and ends with its
// first finding.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/proof/internal/harness"
)

// proof looks for bugs by tests of one package; without a name of it, by those of the package that
// the bug is in.
type proof struct {
	name, module, pkg, run string
	env, flags             []string
	only, outside          string // layers: the bugs of others, or of these, are outside of what it looks at
}

// looksAt reports whether the bugs of a layer are a proof's to find.
func (p proof) looksAt(layer string) bool {
	among := func(layers string) bool { return slices.Contains(strings.Split(layers, ", "), layer) }
	return layer == "" || (p.only == "" || among(p.only)) && !among(p.outside)
}

// adapters are the layers of package lambda, which not every proof runs.
const adapters = "caller, source, breaker"

// proofs have sizes of a minute or two, on two cores.
var proofs = []proof{
	{name: "mix", module: "proof", pkg: "mix", run: "^TestMix$", env: []string{"MIX_SEEDS=2000", "MIX_SHRINK=1"}, outside: adapters + ", race"},
	{name: "simulation", module: "proof", pkg: "simulation", run: "^TestSimulation$", env: []string{"SIM_REQUESTS=2000", "SIM_SHRINK=1"}, outside: "race"},
	{name: "schedules", module: ".", pkg: "idem", run: "^(TestSchedules|TestScopesChangeInTwoReleases)$", outside: adapters + ", drain, double, race"},
	{name: "phases", module: ".", pkg: "idem", run: "^TestPhases", outside: adapters + ", drain, double, race"},
	{name: "traces", module: "proof", pkg: "model", run: "^TestTraces", env: []string{"SPEC_TRACES=1000"}, outside: adapters + ", tenant, race"},
	{name: "conformance", module: ".", pkg: "dynamo", run: "^TestConformance$", outside: adapters + ", drain, completer, double, race"},
	{name: "three stores", module: ".", pkg: "internal/testkit/fakedynamo", run: "^TestStoresAgree$", only: "claim, commit, double"},
	{name: "tenants", module: "proof", pkg: "tenants", run: "^TestTenantsInMemory$", env: []string{"TENANTTEST_N=5000"}, outside: "source, breaker, drain, completer, double, race"},
	{name: "crash matrix", module: "proof", pkg: "crash", run: "^TestCrashMatrix$", env: []string{"CRASH_REQUESTS=310", "CRASH_PATIENCE=1m"}, outside: "tenant, caller, double, race"},
	{name: "its package's tests", module: ".", run: "."},
	{name: "race", module: ".", pkg: "idem", run: "^Test(Renewals|HandlerThatOutlives|NoRenewal)", flags: []string{"-race"}, only: "race"},
}

func main() { harness.Main("planted", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("planted", flag.ContinueOnError)
	flags.SetOutput(stderr)
	layer := flags.String("bug", "", "a regular expression: the layers and texts of the bugs to plant")
	name := flags.String("proof", "", "a regular expression: the proofs that look")
	limit := flags.Duration("cap", 2*time.Minute, "for one proof and one bug")
	sound := flags.Bool("sound", true, "have each proof pass without a bug first")
	if err := flags.Parse(args); err != nil {
		return err
	}
	which, err := regexp.Compile(*layer)
	if err != nil {
		return err
	}
	who, err := regexp.Compile(*name)
	if err != nil {
		return err
	}
	root, err := harness.Root(ctx)
	if err != nil {
		return err
	}
	db, err := dynamotest.Find(ctx)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // in memory; nothing to lose
	t := table{
		root: root, limit: *limit, progress: stderr, env: append(os.Environ(), "REQUIRE_DYNAMODB=1", "DYNAMOTEST_SEPARATE=1", "AWS_ENDPOINT_URL_DYNAMODB="+db.Endpoint),
		proofs: slices.DeleteFunc(slices.Clone(proofs), func(p proof) bool { return !who.MatchString(p.name) }),
	}
	var todo []bug
	if *sound {
		todo = []bug{{what: "none"}}
	}
	for _, b := range bugs() {
		if which.MatchString(b.layer + ": " + b.what) {
			todo = append(todo, b)
		}
	}
	return t.print(ctx, stdout, todo)
}

// table is a run of the program.
type table struct {
	root     string
	env      []string
	limit    time.Duration
	progress io.Writer
	proofs   []proof
}

// print writes a row for each bug. It returns an error for a bug that can't be planted, and
// if a proof fails without one.
func (t *table) print(ctx context.Context, w io.Writer, todo []bug) error {
	fmt.Fprint(w, "| layer | bug |")
	for _, p := range t.proofs {
		fmt.Fprintf(w, " %s |", p.name)
	}
	fmt.Fprintf(w, "\n%s\n", strings.Repeat("| --- ", len(t.proofs)+2)+"|")
	for _, b := range todo {
		cells, err := t.look(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", b.layer, b.what, err)
		}
		fmt.Fprintf(w, "| %s | %s | %s |\n", b.layer, b.what, strings.Join(cells, " | "))
	}
	return nil
}

// look plants a bug, and has the proofs look for it.
func (t *table) look(ctx context.Context, b bug) ([]string, error) {
	tmp, err := os.MkdirTemp("", "planted")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // the run's own folder
	var overlay []string
	if len(b.edits) > 0 {
		file, err := b.plant(t.root, tmp)
		if err != nil {
			return nil, err
		}
		overlay = []string{"-overlay=" + file}
	}
	cells := make([]string, 0, len(t.proofs))
	for _, p := range t.proofs {
		if !p.looksAt(b.layer) || p.pkg == "" && b.edits == nil {
			cells = append(cells, "")
			continue
		}
		if p.pkg == "" {
			p.pkg = path.Dir(b.edits[0].file)
		}
		found, took, out, err := t.find(ctx, p, overlay, tmp)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		if found && b.edits == nil {
			return nil, fmt.Errorf("%s fails without a bug:\n%s", p.name, harness.Tail(out))
		}
		cell := fmt.Sprintf("%.1f s", took.Seconds())
		if !found && b.edits != nil {
			cell = "–"
		}
		cells = append(cells, cell)
		fmt.Fprintf(t.progress, "%s: %s: %s: found %t, %.1f s: %s\n", b.layer, b.what, p.name, found, took.Seconds(), firstError(out))
	}
	return cells, nil
}

// find runs a proof, in its own binary and with the overlay in the programs that it builds.
// A proof that is out of time has found nothing.
func (t *table) find(ctx context.Context, p proof, overlay []string, tmp string) (found bool, took time.Duration, out []byte, err error) {
	dir := filepath.Join(t.root, p.module)
	binary := filepath.Join(tmp, path.Base(p.pkg)+strings.Join(p.flags, "")+".test")
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}, p.flags, overlay, []string{"./" + p.pkg})...)
	build.Dir = dir
	if _, serr := os.Stat(binary); serr != nil {
		if out, err := build.CombinedOutput(); err != nil {
			return false, 0, nil, fmt.Errorf("build: %w\n%s", err, harness.Tail(out))
		}
	}
	test := exec.CommandContext(ctx, binary, "-test.run="+p.run, "-test.failfast", "-test.timeout="+t.limit.String())
	test.Dir = filepath.Join(dir, filepath.FromSlash(p.pkg))
	test.Env = slices.Concat(t.env, p.env, []string{"GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" "+strings.Join(overlay, " "))})
	test.Cancel = func() error { return test.Process.Signal(syscall.SIGTERM) }
	begun := time.Now()
	out, err = test.CombinedOutput()
	took = time.Since(begun)
	if cerr := ctx.Err(); cerr != nil {
		return false, took, out, cerr
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return false, took, out, err
	}
	late := bytes.Contains(out, []byte("panic: test timed out")) && !bytes.Contains(out, []byte("--- FAIL"))
	return err != nil && !late, took, out, nil
}

var errorLine = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: (.+(?:\n.+)?)`)

// firstError is the begin of the last error that tests have printed: those before it are logs.
func firstError(out []byte) string {
	const most = 300
	all := errorLine.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return cmp.Or(strings.Join(strings.Fields(string(out[:min(most, len(out))])), " "), "no output")
	}
	text := strings.Join(strings.Fields(string(all[len(all)-1][1])), " ")
	return text[:min(most, len(text))]
}

// plant writes the changed files to dir, and returns the file that tells the compiler of them.
func (b bug) plant(root, dir string) (overlay string, err error) {
	replace := make(map[string]string)
	for i, e := range b.edits {
		file := filepath.Join(root, filepath.FromSlash(e.file))
		text, err := e.apply(cmp.Or(replace[file], file))
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return "", err
		}
		replace[file] = to
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, raw, 0o600)
}

// apply returns the changed text of a file.
func (e edit) apply(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(e.old)); n != 1 {
		return nil, fmt.Errorf("%s has this %d times, want once: %s", e.file, n, e.old)
	}
	return bytes.Replace(text, []byte(e.old), []byte(e.new), 1), nil
}
