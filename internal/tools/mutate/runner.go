package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// runner builds and runs tests.
type runner struct {
	root, tmp string
	env       []string
	limit     time.Duration
	workers   int
	progress  io.Writer
}

// result is what became of a mutant. Without an error, killer is the test that
// failed; "" if none did.
type result struct {
	mutant
	killer string
	took   time.Duration
	err    error
}

// baseline demands that the tests of ms pass and are there, so that their
// failing means something.
func (r *runner) baseline(ctx context.Context, ms []mutant) error {
	var targets []target
	seen := make(map[target]bool)
	for _, m := range ms {
		if t := m.tests(); !seen[t] {
			seen[t] = true
			targets = append(targets, t)
		}
	}
	binaries := make(map[string]string)
	for _, t := range targets {
		if binaries[t.pkg] == "" {
			binaries[t.pkg] = filepath.Join(r.tmp, "base-"+strings.ReplaceAll(t.pkg, "/", "-")+".test")
			if err := r.build(ctx, t.pkg, binaries[t.pkg], ""); err != nil {
				return err
			}
		}
	}
	errs := make([]error, len(targets))
	r.each(len(targets), func(i int) {
		out, err := r.test(ctx, binaries[targets[i].pkg], targets[i])
		switch {
		case err != nil:
			err = fmt.Errorf("%w\n%s", err, tail(out))
		case bytes.Contains(out, []byte("--- SKIP: ")):
			err = fmt.Errorf("a skipped test notices nothing\n%s", tail(out))
		case !bytes.Contains(out, []byte("--- PASS: ")):
			err = errors.New("there is no such test")
		}
		if err != nil {
			errs[i] = fmt.Errorf("go test ./%s -run '%s': %w", targets[i].pkg, targets[i].run, err)
		}
	})
	return errors.Join(errs...)
}

func (r *runner) tryAll(ctx context.Context, ms []mutant) []result {
	results := make([]result, len(ms))
	r.each(len(ms), func(i int) {
		begun := time.Now()
		killer, err := r.try(ctx, ms[i], strconv.Itoa(i))
		results[i] = result{ms[i], killer, time.Since(begun), err}
		fmt.Fprintf(r.progress, "%d/%d %s: %s\n", i+1, len(ms), ms[i].rule, results[i].verdict())
	})
	return results
}

// each calls fn with 0 to n-1, workers at once.
func (r *runner) each(n int, fn func(i int)) {
	slots := make(chan struct{}, r.workers)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			fn(i)
		})
	}
	wg.Wait()
}

// try returns the test that kills a mutant, "" for a survivor.
func (r *runner) try(ctx context.Context, m mutant, name string) (killer string, err error) {
	code, err := load(r.root, m.dir())
	if err != nil {
		return "", err
	}
	file, text, err := code.mutated(m)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(r.tmp, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // the whole of tmp goes in the end
	source, overlay, binary := filepath.Join(dir, path.Base(file)), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(r.root, filepath.FromSlash(file)): source}})
	err = errors.Join(err, os.WriteFile(source, text, 0o600), os.WriteFile(overlay, replace, 0o600))
	if err != nil {
		return "", err
	}
	if err := r.build(ctx, m.tests().pkg, binary, overlay); err != nil {
		return "", err
	}
	out, err := r.test(ctx, binary, m.tests(), "-test.failfast")
	return killedBy(m, out, err)
}

// build compiles the tests of a package.
func (r *runner) build(ctx context.Context, pkg, binary, overlay string) error {
	// Building is most of the time: without optimizing and debug information, half.
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-gcflags=-N -l", "-ldflags=-s -w", "-o", binary, "-overlay="+overlay, "./"+pkg)
	cmd.Dir, cmd.Env = r.root, r.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("does not compile: %w\n%s", err, out)
	}
	return nil
}

func (r *runner) test(ctx context.Context, binary string, t target, flags ...string) ([]byte, error) {
	// The binary ends itself, with a stack, before it is killed.
	ctx, cancel := context.WithTimeout(ctx, r.limit+30*time.Second)
	defer cancel()
	flags = append(flags, "-test.v", "-test.run="+t.run, "-test.timeout="+r.limit.String())
	cmd := exec.CommandContext(ctx, binary, flags...)
	cmd.Dir, cmd.Env = filepath.Join(r.root, filepath.FromSlash(t.pkg)), r.env
	out, err := cmd.CombinedOutput()
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
		return "", fmt.Errorf("timed out: %t, marked so: %t\n%s", hung, m.hang, tail(out))
	case hung:
		return "time out", nil
	case !m.refused && bytes.Contains(out, []byte("ValidationException")):
		return "", fmt.Errorf("the service refuses the mutant's request, which proves nothing\n%s", tail(out))
	case killer != "":
		return killer, nil
	case bytes.Contains(out, []byte("panic: ")):
		return "a panic", nil
	}
	return "", fmt.Errorf("%w, but no test has failed\n%s", err, tail(out))
}

// tail is the end of what the tests said.
func tail(out []byte) []byte {
	const most = 3000
	return out[max(0, len(out)-most):]
}
