// Command stress runs the tests of each package again and again, beside threads that
// burn CPU: a test that waits for too short a time shows itself.
//
//	go run -C proof ./stress                        # every package of the proofs, three times each
//	go run -C proof ./stress -C .. -race ./dynamo   # one of the library, with the race detector
//
// It prints a line for each package, and the output of a run that fails. It exits with
// 1 if a run fails, and with 2 on wrong use. The burners are threads of this process:
// they end with it, however it ends.
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
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// stress is what is asked for.
type stress struct {
	times, burners int
	race           bool
	limit          time.Duration
	dir            string
	tmp            string
	out            io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s := stress{out: stdout}
	flags := flag.NewFlagSet("stress", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.times, "times", 3, "runs of each package")
	flags.IntVar(&s.burners, "burners", 6*runtime.NumCPU(), "threads that burn CPU")
	flags.BoolVar(&s.race, "race", false, "with the race detector")
	flags.StringVar(&s.dir, "C", ".", "the folder of the packages' module")
	flags.DurationVar(&s.limit, "timeout", 2*time.Hour, "for one run of a package")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || s.times < 1 || s.burners < 0 {
		return 2
	}
	patterns := flags.Args()
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	if err := s.all(ctx, patterns); err != nil {
		fmt.Fprintln(stderr, "stress:", err)
		return 1
	}
	return 0
}

var errFailed = errors.New("some tests don't stand it")

func (s *stress) all(ctx context.Context, patterns []string) (err error) {
	pkgs, err := s.tested(ctx, patterns)
	if err != nil {
		return err
	}
	if s.tmp, err = os.MkdirTemp("", "stress-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.tmp) //nolint:errcheck // a temporary folder
	for _, p := range pkgs {
		if perr := s.one(ctx, p); ctx.Err() != nil {
			return context.Cause(ctx)
		} else if perr != nil {
			err = errFailed
		}
	}
	return err
}

// pkg is a package with tests.
type pkg struct{ path, dir string }

func (s *stress) tested(ctx context.Context, patterns []string) (pkgs []pkg, err error) {
	const format = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}\t{{.Dir}}{{end}}"
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-f", format}, patterns...)...)
	cmd.Dir, cmd.Stderr = s.dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		pkgs = append(pkgs, pkg{path, dir})
	}
	return pkgs, nil
}

// one runs the tests of a package, and prints its line.
func (s *stress) one(ctx context.Context, p pkg) error {
	binary := filepath.Join(s.tmp, path.Base(p.path)+".test") // as go test names it
	build := exec.CommandContext(ctx, "go", "test", fmt.Sprintf("-race=%t", s.race), "-c", "-o", binary, p.path)
	build.Dir = s.dir
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(s.out, "FAIL\t%s\tdoes not compile: %v\n%s", p.path, err, out)
		return err
	}
	end := burn(s.burners)
	defer end()
	var times, outputs []string
	var failed error
	for i := range s.times {
		begun := time.Now()
		out, err := s.test(ctx, binary, p.dir)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		times = append(times, time.Since(begun).Round(100*time.Millisecond).String())
		if err != nil {
			failed = err
			outputs = append(outputs, fmt.Sprintf("run %d: %v\n%s", i+1, err, out))
		} else if i == 0 {
			outputs = append(outputs, missed(out)...)
		}
	}
	verdict := "ok"
	if failed != nil {
		verdict = "FAIL"
	}
	fmt.Fprintf(s.out, "%s\t%s\t%s\n%s", verdict, p.path, strings.Join(times, " "), strings.Join(outputs, ""))
	return failed
}

func (s *stress) test(ctx context.Context, binary, dir string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, binary, "-test.shuffle=on", "-test.timeout="+s.limit.String())
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

// missed are the lines that say which tests did not run.
func missed(out []byte) (lines []string) {
	for line := range bytes.Lines(out) {
		if bytes.Contains(line, []byte(" tests did not run: ")) {
			lines = append(lines, string(line))
		}
	}
	return lines
}

// burn starts threads that do nothing but take time. They end with end.
func burn(threads int) (end func()) {
	var over atomic.Bool
	before := runtime.GOMAXPROCS(threads + 2) // for the tool's own work, too
	for range threads {
		go func() {
			for !over.Load() {
			}
		}()
	}
	return func() {
		over.Store(true)
		runtime.GOMAXPROCS(before)
	}
}
