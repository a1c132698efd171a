package servers

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Missed counts the tests of this process that were skipped because there was no server.
var Missed Skips

// Skips holds the number of skipped tests for each reason. The zero Skips is ready for use.
// A Skips is safe for concurrent use.
type Skips struct {
	mu    sync.Mutex
	count map[string]int
}

// Skip skips the test and counts it.
func (s *Skips) Skip(tb testing.TB, why error) {
	tb.Helper()
	s.mu.Lock()
	if s.count == nil {
		s.count = make(map[string]int)
	}
	s.count[oneLine(why.Error())]++
	s.mu.Unlock()
	tb.Skip(why)
}

// Report prints a line for each reason, with the number of tests skipped for this reason. It
// prints nothing if no test was skipped.
func (s *Skips) Report(w io.Writer, program string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, why := range slices.Sorted(maps.Keys(s.count)) {
		fmt.Fprintf(w, "%s: %d tests did not run: %s\n", program, s.count[why], why)
	}
}

// Tell reports the skipped tests of this process to a person. Without -v, the go command
// hides the output of passing tests, so on Linux Tell prints to the go command's standard
// error.
func (s *Skips) Tell() {
	program := strings.TrimSuffix(filepath.Base(os.Args[0]), ".test")
	if err := toGo(func(w io.Writer) { s.Report(w, program) }); err != nil {
		s.Report(os.Stderr, program)
	}
}

// toGo calls the function print with a writer to the standard error of the go command that
// started this process.
func toGo(print func(io.Writer)) error {
	parent := fmt.Sprintf("/proc/%d/", os.Getppid())
	if exe, err := os.Readlink(parent + "exe"); err != nil || filepath.Base(exe) != "go" {
		return fmt.Errorf("started by %q: %w", exe, err)
	}
	f, err := os.OpenFile(parent+"fd/2", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	print(f)
	return f.Close()
}
