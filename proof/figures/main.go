// Command figures writes the figures of docs/inside/proof.md. It types the command of each row
// of the table, and puts into the row what the command's lines say behind "FIGURES ", the
// day, and the commit.
//
//	go run -C proof ./figures                  # every row (half an hour; Java)
//	go run -C proof ./figures -only simulate   # the rows whose command matches
//	go run -C proof ./figures -check           # have they been measured on this library?
//
// A command that fails leaves its row as it was.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/proof/internal/harness"
)

const page = "docs/inside/proof.md"

// library is what the figures are about: a change of it makes them old.
var library = []string{
	"idem", "dynamo", "lambda", "seal", "internal", "cmd/samekey-worker", "go.mod",
	":!*_test.go", ":!internal/local", ":!internal/testkit", ":!internal/tools", ":!internal/servers",
}

func main() { harness.Main("figures", run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("figures", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "a regular expression: the commands to run")
	check := flags.Bool("check", false, "run nothing: fail if the library has changed since the commit of a row")
	if err := flags.Parse(args); err != nil {
		return err
	}
	which, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	root, err := harness.Root(ctx)
	if err != nil {
		return err
	}
	b := bench{root: root, out: stderr}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		return err
	}
	t, err := read(string(text))
	if err != nil {
		return err
	}
	if *check {
		return b.check(ctx, t)
	}
	commit, err := b.git(ctx, "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return err
	}
	if changed, err := b.git(ctx, append([]string{"status", "--porcelain", "--"}, library...)...); err != nil || changed != "" {
		return errors.Join(err, errors.New("the library has changes that no commit has: commit them first"))
	}
	var failed error
	for _, r := range t.rows {
		if !which.MatchString(t.command(r)) {
			continue
		}
		figures, err := b.measure(ctx, t.command(r))
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", t.command(r), err))
			continue
		}
		r.cells[t.figures], r.cells[t.when] = figures, time.Now().UTC().Format(time.DateOnly)+", "+commit
		if err := os.WriteFile(filepath.Join(root, page), []byte(t.String()), 0o600); err != nil { //nolint:gosec // the path is the repository's
			return err
		}
		fmt.Fprintf(stdout, "%s: %s\n", t.command(r), figures)
	}
	return failed
}

// table is the page, with the rows of its table of figures.
type table struct {
	lines                []string
	rows                 []*row
	figures, typed, when int // columns
}

type row struct {
	line  int
	cells []string
}

func (t *table) command(r *row) string { return strings.Trim(r.cells[t.typed], "`") }

// read finds the table by its head.
func read(text string) (*table, error) {
	t := &table{lines: strings.Split(text, "\n")}
	head := slices.IndexFunc(t.lines, func(l string) bool {
		cells := split(l)
		return slices.Contains(cells, "figures") && slices.Contains(cells, "command") && slices.Contains(cells, "date, commit")
	})
	if head < 0 {
		return nil, errors.New(page + ` has no table with the columns "figures", "command" and "date, commit"`)
	}
	cells := split(t.lines[head])
	t.figures, t.typed, t.when = slices.Index(cells, "figures"), slices.Index(cells, "command"), slices.Index(cells, "date, commit")
	for i := head + 2; i < len(t.lines) && strings.HasPrefix(t.lines[i], "|"); i++ {
		r := &row{i, split(t.lines[i])}
		if len(r.cells) != len(cells) {
			return nil, fmt.Errorf("%s:%d has %d cells, want %d", page, i+1, len(r.cells), len(cells))
		}
		t.rows = append(t.rows, r)
	}
	return t, nil
}

func split(line string) []string {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(c)
	}
	return cells
}

func (t *table) String() string {
	for _, r := range t.rows {
		t.lines[r.line] = "| " + strings.Join(r.cells, " | ") + " |"
	}
	return strings.Join(t.lines, "\n")
}

// bench runs commands.
type bench struct {
	root string
	out  io.Writer
}

func (b bench) git(ctx context.Context, args ...string) (string, error) {
	return harness.Output(ctx, "git", append([]string{"-C", b.root}, args...)...)
}

// check fails for each row that was measured on another library than that of HEAD.
func (b bench) check(ctx context.Context, t *table) (failed error) {
	type found struct {
		files []string
		err   error
	}
	since := make(map[string]found) // by commit: most rows have the same
	for _, r := range t.rows {
		_, commit, _ := strings.Cut(r.cells[t.when], ", ")
		f, known := since[commit]
		if !known {
			f.files, f.err = b.changed(ctx, commit)
			since[commit] = f
		}
		switch {
		case f.err != nil:
			failed = errors.Join(failed, fmt.Errorf("%s: couldn't tell what has changed since %s: fetch the whole history (%w)", t.command(r), commit, f.err))
		case len(f.files) > 0:
			failed = errors.Join(failed, fmt.Errorf("%s: %s and %d other files have changed since %s: make figures", t.command(r), f.files[0], len(f.files)-1, commit))
		}
	}
	return failed
}

// changed returns the library's files whose code HEAD has otherwise than a commit.
func (b bench) changed(ctx context.Context, commit string) ([]string, error) {
	names, err := b.git(ctx, append([]string{"diff", "--name-only", commit, "HEAD", "--"}, library...)...)
	return slices.DeleteFunc(strings.Fields(names), func(file string) bool {
		was, err1 := b.code(ctx, commit, file)
		is, err2 := b.code(ctx, "HEAD", file)
		return err1 == nil && err2 == nil && was == is
	}), err
}

// code returns a file of a commit. Of a Go file it returns the tokens, and of the comments only
// directives: figures aren't older than a comment.
func (b bench) code(ctx context.Context, commit, file string) (string, error) {
	text, err := b.git(ctx, "show", commit+":"+file)
	if err != nil || !strings.HasSuffix(file, ".go") {
		return text, err
	}
	var tokens strings.Builder
	var s scanner.Scanner
	set := token.NewFileSet()
	s.Init(set.AddFile(file, -1, len(text)), []byte(text), nil, scanner.ScanComments)
	for {
		_, kind, literal := s.Scan()
		switch {
		case kind == token.EOF:
			return tokens.String(), nil
		case kind != token.COMMENT || strings.HasPrefix(literal, "//go:"):
			fmt.Fprintln(&tokens, kind, strings.TrimSpace(literal))
		}
	}
}

// measure runs a command, and returns its figures.
func (b bench) measure(ctx context.Context, command string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "REQUIRE_DYNAMODB=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, b.out), b.out
	if err := cmd.Run(); err != nil {
		return "", err
	}
	return figuresOf(out.String())
}

var (
	said = regexp.MustCompile(`(?m)(?:^|\s)FIGURES (.*)$`)
	long = regexp.MustCompile(`\d{4,}`)
)

// figuresOf returns what is said behind FIGURES, with commas in long numbers.
func figuresOf(out string) (string, error) {
	lines := said.FindAllStringSubmatch(out, -1)
	all := make([]string, len(lines))
	for i, m := range lines {
		all[i] = m[1]
	}
	if len(all) == 0 {
		return "", errors.New("its output has no line with FIGURES")
	}
	return long.ReplaceAllStringFunc(strings.Join(all, ", "), func(n string) string {
		for i := len(n) - 3; i > 0; i -= 3 {
			n = n[:i] + "," + n[i:]
		}
		return n
	}), nil
}
