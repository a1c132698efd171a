package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/samekey/samekey/proof/internal/harness"
)

// player builds the tests once, and plays mutants by them.
type player struct {
	root, tmp string
	env       []string
	overlay   string
	workers   int
	limit     time.Duration
	left      []string // tests that make test leaves out, and so play no mutant
	progress  io.Writer

	reach map[string][]*test // by "idem 17": the tests that reach a mutant's place
}

// test is a test of a package.
type test struct {
	dir, name string
	took      time.Duration
	reached   []string
}

// verdicts on a mutant.
type verdict string

const (
	killed   verdict = "killed"
	hung     verdict = "hung"     // the tests didn't end in time, or took all memory: killed, by a weak sign
	survived verdict = "survived" // no test that reaches it fails
	unseen   verdict = "unseen"   // no test reaches it
)

// result is what became of a mutant.
type result struct {
	*mutant
	verdict verdict
	took    time.Duration
	err     error
}

func (m *mutant) id() string { return m.pkg.dir + " " + strconv.Itoa(m.number) }

func (p *player) binary(dir string) string {
	return filepath.Join(p.tmp, strings.ReplaceAll(dir, "/", "-")+".test")
}

// build builds the tests of the packages with all mutants.
func (p *player) build(ctx context.Context, dirs []string) error {
	for _, dir := range dirs {
		module, rest := harness.ModuleOf(dir)
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+p.overlay, "-o", p.binary(dir), rest)
		cmd.Dir, cmd.Env = filepath.Join(p.root, module), append(os.Environ(), "GOGC=400")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the tests of ./%s with their mutants: %w\n%s", dir, err, harness.Tail(out))
		}
	}
	return nil
}

// survey runs each test of the packages alone, without a mutant, and notes what it reaches.
func (p *player) survey(ctx context.Context, dirs []string) error {
	var tests []*test
	for _, dir := range dirs {
		out, err := p.command(ctx, dir, nil, "-test.list=.").Output()
		if err != nil {
			return fmt.Errorf("the tests of ./%s: %w", dir, err)
		}
		for name := range strings.FieldsSeq(string(out)) {
			if !strings.HasPrefix(name, "Benchmark") && !slices.Contains(p.left, name) {
				tests = append(tests, &test{dir: dir, name: name})
			}
		}
	}
	errs := make([]error, len(tests))
	harness.Each(len(tests), p.workers, func(i int) { errs[i] = p.measure(ctx, tests[i], strconv.Itoa(i)) })
	p.reach = make(map[string][]*test)
	for _, t := range tests {
		for _, id := range t.reached {
			p.reach[id] = append(p.reach[id], t)
		}
	}
	return errors.Join(errs...)
}

// measure runs a test alone. Twice, if it fails: a time limit may have been missed.
func (p *player) measure(ctx context.Context, t *test, name string) error {
	file := filepath.Join(p.tmp, "reached-"+name)
	defer os.Remove(file) //nolint:errcheck // the whole of tmp goes in the end
	var out []byte
	var err error
	for range 2 {
		began := time.Now()
		cmd := p.command(ctx, t.dir, []string{reachedEnv + "=" + file}, "-test.run=^"+t.name+"$", "-test.timeout=5m")
		if out, err = cmd.CombinedOutput(); err == nil {
			t.took = time.Since(began)
			break
		}
	}
	if err != nil {
		return fmt.Errorf("without a mutant, ./%s %s: %w\n%s", t.dir, t.name, err, harness.Tail(out))
	}
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		t.reached = append(t.reached, strings.TrimSpace(line))
	}
	slices.Sort(t.reached)
	t.reached = slices.Compact(t.reached)
	return err
}

func (p *player) command(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.binary(dir), args...)
	cmd.Dir, cmd.Env = filepath.Join(p.root, filepath.FromSlash(dir)), slices.Concat(p.env, env)
	cmd.WaitDelay = 5 * time.Second
	// What a test has started ends with it, also if a mutant starts ever more.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return endGroup(cmd) }
	return cmd
}

// endGroup ends a test and what it has started.
func endGroup(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// first is how long the first tests of a mutant may take; most mutants die in them.
const first = time.Second

// play runs the tests that reach a mutant: the fastest ones first.
func (p *player) play(ctx context.Context, m *mutant) result {
	began := time.Now()
	r := result{mutant: m, verdict: unseen}
	testers := m.pkg.testers()
	tests := slices.DeleteFunc(slices.Clone(p.reach[m.id()]), func(t *test) bool { return !slices.Contains(testers, t.dir) })
	slices.SortFunc(tests, func(a, b *test) int {
		return cmp.Or(slices.Index(testers, a.dir)-slices.Index(testers, b.dir), cmp.Compare(a.took, b.took))
	})
	for _, batch := range batches(within(tests, p.limit)) {
		if r.verdict, r.err = p.run(ctx, m, batch); r.verdict != survived {
			break
		}
	}
	r.took = time.Since(began)
	return r
}

// within are the first of tests that take no longer than limit, and one at least.
func within(tests []*test, limit time.Duration) []*test {
	for i, t := range tests {
		if limit -= t.took; limit < 0 {
			return tests[:max(i, 1)]
		}
	}
	return tests
}

// batches cuts tests into processes: of one package each, small ones first.
func batches(tests []*test) (all [][]*test) {
	limit, sum := first, time.Duration(0)
	for i, t := range tests {
		last := len(all) - 1
		if i == 0 || t.dir != tests[i-1].dir || sum+t.took > limit && sum > 0 {
			if i > 0 {
				limit *= 4
			}
			all, sum = append(all, nil), 0
			last++
		}
		all[last] = append(all[last], t)
		sum += t.took
	}
	return all
}

// memory is what a test may have.
const memory = 3 << 30

func (p *player) run(ctx context.Context, m *mutant, tests []*test) (verdict, error) {
	names, limit := make([]string, len(tests)), 10*time.Second
	for i, t := range tests {
		names[i] = t.name
		limit += 4 * t.took
	}
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	cmd := p.command(ctx, tests[0].dir, []string{chosenEnv + "=" + m.id()},
		"-test.run=^("+strings.Join(names, "|")+")$", "-test.failfast", "-test.timeout="+limit.String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", err
	}
	done := make(chan struct{})
	large := watch(cmd, done)
	err := cmd.Wait()
	close(done)
	_ = endGroup(cmd) // there may be nobody
	switch {
	case <-large, ctx.Err() != nil, bytes.Contains(out.Bytes(), []byte("panic: test timed out after")):
		return hung, nil
	case err != nil:
		return killed, nil
	}
	return survived, nil
}

// watch ends a process that takes too much memory, where /proc tells how much it has. The
// channel says once done is closed whether it did.
func watch(cmd *exec.Cmd, done <-chan struct{}) <-chan bool {
	large := make(chan bool, 1)
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				large <- false
				return
			case <-tick.C:
			}
			if kb, _ := harness.Memory(cmd.Process.Pid, "VmRSS"); kb > memory>>10 { // without /proc nobody watches
				_ = endGroup(cmd)
				<-done
				large <- true
				return
			}
		}
	}()
	return large
}

func (p *player) playAll(ctx context.Context, ms []*mutant) []result {
	results := make([]result, len(ms))
	harness.Each(len(ms), p.workers, func(i int) {
		results[i] = p.play(ctx, ms[i])
		fmt.Fprintf(p.progress, "%d/%d %.1f s %s %v\n", i+1, len(ms), results[i].took.Seconds(), results[i].verdict, ms[i])
	})
	return results
}

// testersOf are the packages that play some mutants.
func testersOf(ms []*mutant) []string {
	all := make(map[string]bool)
	for _, m := range ms {
		for _, dir := range m.pkg.testers() {
			all[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
