package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// equivalentFile has the mutants that change nothing, a line each: the file, the text of
// the line of code (and lines before it, with ⏎ between, where one line is not enough to
// tell it), the operator, a piece of the change (* for any), and the reason, with
// " | " between them.
const equivalentFile = "proof/operators/equivalent.txt"

// strict are places where no mutant may survive.
var strict = []string{"seal/", "lambda/scope.go", "internal/state/", "idem/commit.go", "idem/release.go", "idem/renew.go", "idem/unattended.go", "idem/write.go", "dynamo/conditions.go", "dynamo/expression.go", "dynamo/take.go", "dynamo/transact.go", "dynamo/update.go"}

// equivalent is a line of the file.
type equivalent struct {
	file, source, op, change, why string
	used                          bool
}

func equivalents(root string) (all []*equivalent, err error) {
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(equivalentFile)))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, " | ")
		if len(parts) != 5 || parts[4] == "" {
			return nil, fmt.Errorf("%s: a line has a file, a line of code, an operator, a change and a reason: %s", equivalentFile, line)
		}
		all = append(all, &equivalent{file: parts[0], source: parts[1], op: parts[2], change: parts[3], why: parts[4]})
	}
	return all, nil
}

func (e *equivalent) fits(m *mutant) bool {
	return e.file == m.file && strings.HasSuffix(" ⏎ "+m.before, " ⏎ "+e.source) && (e.op == m.op || e.op == "*") && (e.change == "*" || strings.Contains(m.change, e.change))
}

// split returns the mutants that change something, and how many others there are.
func split(all []*pkg, listed []*equivalent) (todo []*mutant, same int, err error) {
	for _, p := range all {
		for _, m := range p.mutants {
			is := false
			for _, e := range listed {
				if e.fits(m) {
					e.used, is = true, true
				}
			}
			if is {
				same++
				continue
			}
			todo = append(todo, m)
		}
	}
	var errs []error
	for _, e := range listed {
		if !e.used {
			errs = append(errs, fmt.Errorf("%s: no mutant is as it says: %s: %s", equivalentFile, e.file, e.source))
		}
	}
	return todo, same, errors.Join(errs...)
}
