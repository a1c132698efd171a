package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestStartSkipsOrFails(t *testing.T) {
	missing := fmt.Errorf("%w: java", ErrUnavailable)
	other := errors.New("dynamotest: a remote host")
	for _, tt := range []struct {
		name, require string
		err           error
		skipped       string
		failed        string
	}{
		{"nothing to be had", "", missing, missing.Error(), ""},
		{"nothing to be had, and said not to matter", "0", missing, missing.Error(), ""},
		{"nothing to be had, but required", "1", missing, "", missing.Error()},
		{"nothing to be had, but required by another word", "yes", missing, "", missing.Error()},
		{"another error", "", other, "", other.Error()},
		{"no error", "1", nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(envRequire, tt.require)
			s := sharedDB{skips: new(servers.Skips)}
			got := serverstest.RunTest(func(t *serverstest.TB) {
				s.start(t, func(context.Context) (*DB, error) {
					if tt.err != nil {
						return nil, tt.err
					}
					return &DB{}, nil
				})
			})
			if got.SkippedWith != tt.skipped || got.FailedWith != tt.failed {
				t.Errorf("got skipped %q, failed %q; want skipped %q, failed %q", got.SkippedWith, got.FailedWith, tt.skipped, tt.failed)
			}
		})
	}
}

func TestStartFindsOnce(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]error{"found": nil, "missing": ErrUnavailable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s sharedDB
			calls := 0
			find := func(context.Context) (*DB, error) {
				calls++
				if result != nil {
					return nil, result
				}
				return &DB{}, nil
			}
			dbs := make([]*DB, 8)
			var wg sync.WaitGroup
			for i := range dbs {
				wg.Go(func() {
					var err error
					if dbs[i], err = s.get(find); !errors.Is(err, result) {
						t.Errorf("got %v, want %v", err, result)
					}
				})
			}
			wg.Wait()
			for _, db := range dbs {
				if db != dbs[0] {
					t.Errorf("got different databases")
				}
			}
			if calls != 1 {
				t.Errorf("searched %d times, want once", calls)
			}
		})
	}
}

type tests func() int

func (f tests) Run() int { return f() }

func TestMainClosesTheSharedDatabase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		code, want int
		closeErr   error
	}{
		{"tests pass", 0, 0, nil},
		{"tests fail", 3, 3, nil},
		{"closing fails", 0, 1, errors.New("injected: this line is expected in the output")},
		{"both fail", 3, 3, errors.New("injected: this line is expected in the output")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := sharedDB{skips: new(servers.Skips)}
			open := false
			got := s.main(tests(func() int {
				_, _ = s.get(func(context.Context) (*DB, error) {
					open = true
					return &DB{handle: servers.Handle{Stop: func() error { open = false; return tt.closeErr }}}, nil
				})
				if !open {
					t.Error("the database was closed before the tests ended")
				}
				return tt.code
			}))
			if got != tt.want || open {
				t.Errorf("got code %d, open %v; want code %d, closed", got, open, tt.want)
			}
		})
	}
}

func TestMainWithoutADatabase(t *testing.T) {
	t.Parallel()
	s := sharedDB{skips: new(servers.Skips)}
	if got := s.main(tests(func() int { return 4 })); got != 4 {
		t.Errorf("got code %d, want 4", got)
	}
}

// Without a database a passing package says how many of its tests did not run.
func TestMainTellsWhatDidNotRun(t *testing.T) {
	const child = "DYNAMOTEST_TEST_CHILD"
	if os.Getenv(child) != "" {
		t.Run("one", func(t *testing.T) { Start(t) })
		t.Run("two", func(t *testing.T) { Start(t) })
		return
	}
	bare(t, nil)
	cmd := exec.Command(os.Args[0], "-test.run=^TestMainTellsWhatDidNotRun$")
	cmd.Env = append(os.Environ(), child+"=1")
	out, err := cmd.CombinedOutput()
	if want := "dynamotest: 2 tests did not run: dynamotest: no DynamoDB"; err != nil || strings.Count(string(out), want) != 1 || !strings.Contains(string(out), noVar) {
		t.Errorf("got %v\n%s\nwant %q and %q", err, out, want, noVar)
	}
	t.Setenv(envRequire, "1")
	cmd = exec.Command(os.Args[0], "-test.run=^TestMainTellsWhatDidNotRun$")
	cmd.Env = append(os.Environ(), child+"=1")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("required, and missing: the tests pass\n%s", out)
	}
}
