package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samekey/samekey/proof/internal/harness"
)

// runner builds and runs tests.
type runner struct {
	builder
	tmp      string
	limit    time.Duration
	workers  int
	progress io.Writer
}

// result is what became of a mutant. Without an error, killer is the test that
// failed; "" if none did.
type result struct {
	mutant
	killer string
	took   time.Duration
	cpu    meter
	err    error
}

// baseline demands that the tests of ms pass and are there, so that their failing
// means something. The tests of a package run once, in one process.
func (r *runner) baseline(ctx context.Context, ms []mutant) error {
	byPackage := make(map[string][]string)
	for _, m := range ms {
		if t := m.tests(); !slices.Contains(byPackage[t.pkg], t.run) {
			byPackage[t.pkg] = append(byPackage[t.pkg], t.run)
		}
	}
	pkgs := slices.Sorted(maps.Keys(byPackage))
	errs := make([]error, len(pkgs))
	harness.Each(len(pkgs), r.workers, func(i int) {
		var cpu meter
		begun := time.Now()
		if err := r.passes(ctx, pkgs[i], byPackage[pkgs[i]], &cpu); err != nil {
			errs[i] = fmt.Errorf("go test ./%s -run '%s': %w", pkgs[i], strings.Join(byPackage[pkgs[i]], "|"), err)
		}
		fmt.Fprintf(r.progress, "without a mutant, ./%s: %.1f s, %.1f s of a processor\n", pkgs[i], time.Since(begun).Seconds(), cpu.seconds())
	})
	return errors.Join(errs...)
}

// many times a mutant's limit is that of all tests of a package.
const many = 10

// passes runs the tests of a package that patterns name.
func (r *runner) passes(ctx context.Context, pkg string, patterns []string, cpu *meter) error {
	binary := filepath.Join(r.tmp, "base-"+strings.ReplaceAll(pkg, "/", "-")+".test")
	if err := r.binary(ctx, pkg, binary, nil, cpu); err != nil {
		return err
	}
	defer os.Remove(binary) //nolint:errcheck // the whole of tmp goes in the end
	out, err := r.test(ctx, binary, target{pkg, strings.Join(patterns, "|")}, many*r.limit, cpu)
	switch {
	case err != nil:
		return fmt.Errorf("%w\n%s", err, harness.Tail(out))
	case bytes.Contains(out, []byte("--- SKIP: ")):
		return fmt.Errorf("a skipped test notices nothing\n%s", harness.Tail(out))
	}
	for _, p := range patterns {
		if !ran(p, out) {
			return fmt.Errorf("there is no such test: %s", p)
		}
	}
	return nil
}

var passed = regexp.MustCompile(`(?m)^\s*--- PASS: (\S+)`)

// ran says whether a test that the pattern names has passed.
func ran(pattern string, out []byte) bool {
	parts := strings.Split(pattern, "/")
	for _, match := range passed.FindAllSubmatch(out, -1) {
		name := strings.Split(string(match[1]), "/")
		fits := len(name) >= len(parts)
		for i := 0; fits && i < len(parts); i++ {
			fits = regexp.MustCompile(parts[i]).MatchString(name[i])
		}
		if fits {
			return true
		}
	}
	return false
}

func (r *runner) tryAll(ctx context.Context, ms []mutant) []result {
	results := make([]result, len(ms))
	harness.Each(len(ms), r.workers, func(i int) {
		begun := time.Now()
		var cpu meter
		killer, err := r.try(ctx, ms[i], strconv.Itoa(i), &cpu)
		results[i] = result{ms[i], killer, time.Since(begun), cpu, err}
		fmt.Fprintf(r.progress, "%d/%d %s: %s\n", i+1, len(ms), ms[i].rule, results[i].verdict())
	})
	return results
}

// try returns the test that kills a mutant, "" for a survivor.
func (r *runner) try(ctx context.Context, m mutant, name string, cpu *meter) (killer string, err error) {
	c, done, err := r.change(m, name)
	if err != nil {
		return "", err
	}
	defer done()
	binary := filepath.Join(c.tmp, "mutant.test")
	if err := r.binary(ctx, m.tests().pkg, binary, c, cpu); err != nil {
		return "", err
	}
	out, err := r.test(ctx, binary, m.tests(), r.limit, cpu, "-test.failfast")
	return killedBy(m, out, err)
}

// change writes a mutant into a folder, which done removes.
func (r *runner) change(m mutant, name string) (c *change, done func(), err error) {
	code, err := load(r.root, m.dir())
	if err != nil {
		return nil, nil, err
	}
	file, text, err := code.mutated(m)
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(r.tmp, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, nil, err
	}
	c = &change{m.dir(), path.Base(file), filepath.Join(dir, path.Base(file)), filepath.Join(dir, "overlay.json"), dir}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(r.root, filepath.FromSlash(file)): c.source}})
	err = errors.Join(err, os.WriteFile(c.source, text, 0o600), os.WriteFile(c.overlay, replace, 0o600))
	return c, func() { _ = os.RemoveAll(dir) }, err
}

func (r *runner) test(ctx context.Context, binary string, t target, limit time.Duration, cpu *meter, flags ...string) ([]byte, error) {
	// The binary ends itself, with a stack, before it is killed.
	ctx, cancel := context.WithTimeout(ctx, limit+30*time.Second)
	defer cancel()
	flags = append(flags, "-test.v", "-test.run="+t.run, "-test.timeout="+limit.String())
	cmd := exec.CommandContext(ctx, binary, flags...)
	cmd.Dir, cmd.Env = filepath.Join(r.root, filepath.FromSlash(t.pkg)), r.env
	out, err := cmd.CombinedOutput()
	cpu.add(cmd.ProcessState)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return out, err
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// killedBy reads from what the tests said whether they noticed a mutant.
func killedBy(m mutant, out []byte, err error) (killer string, _ error) {
	if err == nil {
		return "", nil
	}
	if _, ended := errors.AsType[*exec.ExitError](err); !ended {
		return "", err
	}
	hung := bytes.Contains(out, []byte("panic: test timed out after"))
	for _, match := range failed.FindAllSubmatch(out, -1) {
		if name := string(match[1]); strings.Count(name, "/") >= strings.Count(killer, "/") {
			killer = name
		}
	}
	switch {
	case hung != m.hang:
		return "", fmt.Errorf("timed out: %t, marked so: %t\n%s", hung, m.hang, harness.Tail(out))
	case hung:
		return "time out", nil
	case !m.refused && bytes.Contains(out, []byte("ValidationException")):
		return "", fmt.Errorf("the service refuses the mutant's request, which proves nothing\n%s", harness.Tail(out))
	case killer != "":
		return killer, nil
	case bytes.Contains(out, []byte("panic: ")):
		return "a panic", nil
	}
	return "", fmt.Errorf("%w, but no test has failed\n%s", err, harness.Tail(out))
}
