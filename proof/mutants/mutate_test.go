package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	code = `package p

func Abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}

func Wait(n int) {
	for n > 0 {
		n--
	}
}
`
	tests = `package p

import (
	"errors"
	"os"
	"testing"
)

func TestAbs(t *testing.T) {
	t.Run("of one below zero", func(t *testing.T) {
		if Abs(-1) != 1 {
			t.Error("wrong")
		}
	})
}

func TestWeak(t *testing.T)   { Abs(1) }
func TestWait(t *testing.T)   { Wait(1) }
func TestFails(t *testing.T)  { t.Error("always") }
func TestSkips(t *testing.T)  { t.Skip() }
func TestService(t *testing.T) {
	if Abs(-1) != 1 {
		t.Error(errors.New("ValidationException: not an expression"))
	}
}
func TestExits(t *testing.T) {
	if Abs(-1) != 1 {
		os.Exit(3)
	}
}
`
)

// A program that tests build: the changed package is in the program, and not in the
// tests' binary.
const (
	program = `package main

import (
	"os"

	"sample/p"
)

func main() {
	if p.Abs(-1) != 1 {
		os.Exit(1)
	}
}
`
	programTests = `package q

import (
	"os/exec"
	"testing"
)

func TestProgram(t *testing.T) {
	if out, err := exec.Command("go", "run", "./main").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
`
)

// sample is a runner for a small module.
func sample(t *testing.T) *runner {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.26\n", "p/p.go": code, "p/p_test.go": tests,
		"q/main/main.go": program, "q/q_test.go": programTests,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &runner{builder: builder{root: root, env: os.Environ()}, tmp: t.TempDir(), limit: time.Minute, workers: 2, progress: io.Discard}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	r := sample(t)
	for name, tc := range map[string]struct {
		old, new, run string
		mod           func(*mutant)
		limit         time.Duration
		killer        string
		err           string // a part of it
	}{
		"killed":                     {old: "return -$n", new: "return $n", run: "^TestAbs$", killer: "TestAbs/of_one_below_zero"},
		"survives":                   {old: "return -$n", new: "return $n", run: "^TestWeak$"},
		"does not compile":           {old: "return -$n", new: "return nil", run: "^TestAbs$", err: "does not compile"},
		"the snippet is gone":        {old: "return +$n", new: "return $n", run: "^TestAbs$", err: "is not there"},
		"the snippet is not one":     {old: "return", new: "panic($n); return", run: "^TestAbs$", err: "2 times"},
		"hangs":                      {old: "$n--", new: "$n++; $n--", run: "^TestWait$", limit: 2 * time.Second, err: "timed out: true, marked so: false"},
		"hangs, and was to":          {old: "$n--", new: "$n++; $n--", run: "^TestWait$", limit: 2 * time.Second, mod: func(m *mutant) { m.hang = true }, killer: "time out"},
		"was to hang":                {old: "return -$n", new: "return $n", run: "^TestAbs$", mod: func(m *mutant) { m.hang = true }, err: "timed out: false, marked so: true"},
		"an invalid request":         {old: "return -$n", new: "return $n", run: "^TestService$", err: "proves nothing"},
		"an invalid request, wanted": {old: "return -$n", new: "return $n", run: "^TestService$", mod: func(m *mutant) { m.refused = true }, killer: "TestService"},
		"ends without a failure":     {old: "return -$n", new: "return $n", run: "^TestExits$", err: "no test has failed"},
		"a panic":                    {old: "return -$n", new: "panic($n)", run: "^TestAbs$", killer: "TestAbs/of_one_below_zero"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := &runner{builder: builder{root: r.root, env: r.env}, tmp: r.tmp, limit: r.limit, workers: 2, progress: io.Discard}
			if tc.limit > 0 {
				one.limit = tc.limit
			}
			m := mutant{rule: name, what: name, in: "p.Abs", old: tc.old, new: tc.new, run: tc.run}
			if strings.Contains(tc.run, "Wait") {
				m.in = "p.Wait"
			}
			if tc.mod != nil {
				tc.mod(&m)
			}
			killer, err := one.try(t.Context(), m, strings.ReplaceAll(name, " ", "-"), new(meter))
			if killer != tc.killer || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("killed by %q, %v; want %q, %q", killer, err, tc.killer, tc.err)
			}
		})
	}
	t.Run("the checkout stays as it is", func(t *testing.T) {
		if b, err := os.ReadFile(filepath.Join(r.root, "p/p.go")); err != nil || string(b) != code {
			t.Errorf("%v\n%s", err, b)
		}
	})
}

// What fails without a mutant, isn't there or is skipped can't notice one.
func TestBaseline(t *testing.T) {
	t.Parallel()
	r := sample(t)
	for run, want := range map[string]string{
		"^TestAbs$": "", "^TestFails$": "always", "^TestSkips$": "skipped", "^TestNone$": "no such test",
	} {
		err := r.baseline(t.Context(), []mutant{{in: "p.Abs", run: run}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", run, err, want)
		}
	}
}

func TestReportFailsForSurvivors(t *testing.T) {
	t.Parallel()
	m := mutant{rule: "Rule", what: "what it does"}
	for name, tc := range map[string]struct {
		result result
		ok     bool
	}{
		"killed":   {result{mutant: m, killer: "TestX"}, true},
		"survives": {result{mutant: m}, false},
		"broken":   {result{mutant: m, err: context.Canceled}, false},
	} {
		var out strings.Builder
		if err := printResults(&out, []result{tc.result}, time.Minute); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if want := fmt.Sprintf("1 mutants, %d killed", map[bool]int{true: 1}[tc.ok]); !strings.Contains(out.String(), want) {
			t.Errorf("%s: want %q in\n%s", name, want, out.String())
		}
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"a bad expression": {"-only", "("}, "no workers": {"-workers", "0"}, "an argument": {"AckID"}, "a flag": {"-all"},
	} {
		if code := run(t.Context(), args, io.Discard, io.Discard); code != 2 {
			t.Errorf("%s: exit code %d, want 2", name, code)
		}
	}
}
