// Package harness has the common parts of the proofs: folders, commands and figures of processes.
package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Root returns the folder of the root module, in which the module of the proofs lies.
// The working directory lies in the module of the proofs.
func Root(ctx context.Context) (string, error) {
	mod, err := Output(ctx, "go", "env", "GOMOD")
	if err != nil || !strings.HasSuffix(mod, "go.mod") {
		return "", fmt.Errorf("go env GOMOD: %q, %w", mod, err)
	}
	return filepath.Dir(filepath.Dir(mod)), nil
}

// Main runs a program until it ends or is interrupted. An error ends the process with status 1.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Output runs a command and returns its output without space around it.
func Output(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return strings.TrimSpace(string(out)), err
}

// MakeList returns the words of a variable of the Makefile.
func MakeList(root, name string) ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		if of, words, ok := strings.Cut(line, ":="); ok && strings.TrimSpace(of) == name {
			return strings.Fields(words), nil
		}
	}
	return nil, fmt.Errorf("the Makefile has no list %s", name)
}

// Tail returns the end of what tests said.
func Tail(out []byte) []byte {
	const most = 3000
	return out[max(0, len(out)-most):]
}

// Memory returns a figure of a process's memory in KB, such as VmRSS or VmHWM; not ok if
// the process has ended, or where there is no /proc.
func Memory(pid int, figure string) (kb int, ok bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, figure+":"); found {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			return kb, err == nil
		}
	}
	return 0, false
}
