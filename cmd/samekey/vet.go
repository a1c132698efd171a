package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/unitchecker"
	"golang.org/x/tools/go/packages"

	"github.com/samekey/samekey/cmd/samekey/internal/vet"
	"github.com/samekey/samekey/cmd/samekey/internal/vet/lock"
)

const vetLong = `Finds mistakes in handlers with phases: effects that a retry repeats,
variables that stay empty in a retry, calls without a derived key. Tests are skipped.
PACKAGES are as for the go command (default: ./...). docs/use/vet.md explains the rules, and
how to suppress a finding.

With --lock, vet also compares phases, scopes and fingerprints with a lock file in your
repository, and finds the changes that break open operations.

With --lock and --open, vet scans the table, and examines no packages. Run this check before
a deploy. The lock file describes the build to deploy. vet finds open operations that don't
fit this build:
  refused   the build lacks a phase of the operation, and refuses to continue the operation
  twice     the build lacks a call that is in doubt, so the call may be made twice

To run the rules as a tool of go vet, which caches results but reads no lock file:
    go vet -vettool=$(which samekey) ./...

Rules:
`

// vetOptions holds the flags of samekey vet.
type vetOptions struct {
	lock, tags string
	update     bool
	open       bool
	patterns   []string
}

func newVet(env environment) *cobra.Command {
	var opt vetOptions
	var rules strings.Builder
	for _, a := range vet.Analyzers() {
		fmt.Fprintf(&rules, "  %-10s %s\n", a.Name, a.Doc)
	}
	var op *operator
	var s *scan
	cmd := &cobra.Command{
		Use:   "vet [FLAGS] [PACKAGES]",
		Short: "Find mistakes in handlers with phases",
		Long:  vetLong + strings.TrimSuffix(rules.String(), "\n"),
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case opt.update && opt.lock == "":
				return wrongCallf("--update needs --lock")
			case opt.open && (opt.update || opt.tags != "" || len(args) > 0):
				return wrongCallf("--open examines the table, not packages: leave out --update, --tags and packages")
			case opt.open:
				return vetOpen(cmd.Context(), env, op, s, opt.lock)
			}
			if opt.patterns = args; len(args) == 0 {
				opt.patterns = []string{"./..."}
			}
			n, err := vetPackages(cmd.Context(), env, opt)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d findings; docs/use/vet.md explains the rules", n)
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&opt.lock, "lock", "", "compare phases, scopes and fingerprints with the lock `FILE`")
	fs.BoolVar(&opt.update, "update", false, "with --lock: write the present code's phases, scopes and fingerprints to FILE")
	fs.StringVar(&opt.tags, "tags", "", "build tags, separated by commas")
	fs.BoolVar(&opt.open, "open", false, "with --lock: check that the build can finish the table's open operations")
	op, s = newOperator(env, fs), newScan(env, fs)
	return exitCodes(cmd, map[int]string{
		exitDone: "no findings; with --open: the build can finish every open operation", exitFailed: "findings, or packages that don't compile",
		exitFound: "with --open: the build can't finish some operations, or some items are unreadable",
	})
}

// vetPackages prints the findings and returns their number.
func vetPackages(ctx context.Context, env environment, opt vetOptions) (int, error) {
	pkgs, err := loadPackages(ctx, opt.tags, opt.patterns)
	if err != nil {
		return 0, err
	}
	graph, err := checker.Analyze(append(vet.Analyzers(), vet.Program, vet.Hints), pkgs, nil)
	if err != nil {
		return 0, err
	}
	var program lock.Program
	var found []diagnostic
	for _, action := range graph.Roots {
		if action.Err != nil {
			return 0, fmt.Errorf("%v: %w", action, action.Err)
		}
		if p, ok := action.Result.(lock.Program); ok {
			program.Handlers, program.Engines = append(program.Handlers, p.Handlers...), append(program.Engines, p.Engines...)
		}
		for _, d := range action.Diagnostics {
			found = append(found, diagnostic{action.Package.Fset.Position(d.Pos), d})
		}
	}
	slices.SortFunc(found, func(a, b diagnostic) int {
		return cmp.Or(cmp.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	mistakes := 0
	for _, d := range found {
		if d.Category == "hint" {
			env.note("%v: %s", fromHere(d.at), d.Message)
			continue
		}
		_ = env.say("%v: %s", fromHere(d.at), d.Message) // if printing fails, the exit code still reports the mistake
		mistakes++
	}
	if opt.lock == "" {
		return mistakes, nil
	}
	n, err := vetLock(ctx, env, opt, pkgs, program)
	return mistakes + n, err
}

type diagnostic struct {
	at token.Position
	analysis.Diagnostic
}

// fromHere makes the name of a file relative to the current folder.
func fromHere(p token.Position) token.Position {
	here, _ := os.Getwd() // if Getwd fails, the name stays absolute
	if rel, err := filepath.Rel(here, p.Filename); err == nil && !strings.HasPrefix(rel, "..") {
		p.Filename = rel
	}
	return p
}

// loadPackages type-checks packages from source, and reads imported packages from the
// compiler's export data.
func loadPackages(ctx context.Context, tags string, patterns []string) ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{
		Context: ctx, BuildFlags: []string{"-tags=" + tags},
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedExportFile |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedModule,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	var all []error
	for _, p := range pkgs {
		for _, e := range p.Errors {
			all = append(all, e)
		}
	}
	if len(pkgs) == 0 {
		all = append(all, fmt.Errorf("no packages match %s", strings.Join(patterns, " ")))
	}
	return pkgs, errors.Join(all...)
}

// vetLock compares the program with the lock file or, with --update, writes the file.
func vetLock(ctx context.Context, env environment, opt vetOptions, pkgs []*packages.Package, program lock.Program) (int, error) {
	file, err := lock.Read(opt.lock)
	if err != nil {
		return 0, err
	}
	loaded := func(path string) bool {
		return slices.ContainsFunc(pkgs, func(p *packages.Package) bool { return p.PkgPath == path })
	}
	gone := make(map[string]bool) // whether a package of the lock file no longer exists; no entry for a loaded package
	for _, path := range slices.AppendSeq(slices.Collect(maps.Keys(file.Packages)), maps.Keys(file.Engines)) {
		if _, asked := gone[path]; asked || loaded(path) {
			continue
		}
		found, err := loadPackages(ctx, opt.tags, []string{path})
		if ctx.Err() != nil {
			return 0, err
		}
		// a package that doesn't compile has files, so it exists
		gone[path] = !slices.ContainsFunc(found, func(p *packages.Package) bool { return len(p.GoFiles)+len(p.IgnoredFiles) > 0 })
	}
	isGone := func(path string) bool { return gone[path] }
	changes := file.Compare(program, loaded, isGone)
	next := file.Updated(program, loaded, isGone)
	for _, c := range changes {
		c.Pos = fromHere(c.Pos)
		fmt.Fprintln(env.stdout, c)
	}
	_, missing := os.Stat(opt.lock)
	switch {
	case opt.update:
		return 0, next.Write(opt.lock)
	case errors.Is(missing, fs.ErrNotExist):
		fmt.Fprintf(env.stdout, "%s: lock: the file does not exist: run samekey vet --lock %s --update %s, and commit the file\n",
			opt.lock, opt.lock, strings.Join(opt.patterns, " "))
		return 1, nil
	case len(changes) == 0 && !next.Equal(file):
		fmt.Fprintf(env.stdout, "%s: lock: the code has changes that the lock file lacks. Open operations survive these changes; to record the changes, run samekey vet --lock %s --update\n", opt.lock, opt.lock)
		return 1, nil
	}
	return len(changes), nil
}

// vetTool does what go vet -vettool asks for in args, and then ends the program. go vet
// asks for the program's version or flags, or passes a file that describes a package to
// examine. If args are not from go vet, vetTool does nothing.
func vetTool(args []string) {
	if len(args) > 0 && (args[0] == "-V=full" || args[0] == "-flags" || strings.HasSuffix(args[len(args)-1], ".cfg")) {
		unitchecker.Main(vet.Analyzers()...)
	}
}
