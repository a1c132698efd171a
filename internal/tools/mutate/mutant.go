package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is the code with one rule switched off.
type mutant struct {
	rule string // the model's name, or a name for a fence that the model doesn't have
	what string // what the mutant does
	file string // from the module's root, with slashes
	old  string // the text that is replaced: exactly once in the file
	new  string
	pkg  string // the package of the tests, "idem/idemtest"; "": that of file
	run  string // go test -run
	hang bool   // the tests notice by never ending

	// refused says that the service refuses the mutant's request, and that this is
	// what the tests have to notice. Otherwise a refusal is a mistake of the table:
	// an expression that isn't valid proves nothing about its condition.
	refused bool
}

func (m mutant) tests() target {
	if m.pkg == "" {
		return target{path.Dir(m.file), m.run}
	}
	return target{m.pkg, m.run}
}

// target are some tests of a package.
type target struct{ pkg, run string }

// table is every mutant there is.
func table() []mutant {
	return slices.Concat(whoseMutants(), operationMutants(), recordMutants(), engineMutants(), phaseMutants(), resumeMutants(), storeMutants(), bodyMutants(), writeMutants(),
		jobMutants(), streamMutants(), sinkMutants(), callerMutants(), waitMutants(), panicMutants(), patienceMutants(), clientMutants(), renewMutants(), keyMutants(), envelopeMutants(), corsMutants(), bodyKeyMutants(), shareMutants())
}

// mutated returns the text of m's file with the rule off.
func (m mutant) mutated(root string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return nil, err
	}
	text := string(b)
	if n := strings.Count(text, m.old); n != 1 || m.old == m.new {
		return nil, fmt.Errorf("the text is %d times in %s, want once and changed:\n%s", n, m.file, m.old)
	}
	return []byte(strings.Replace(text, m.old, m.new, 1)), nil
}

// check finds what is wrong with a table without running anything.
func check(root string, ms []mutant) error {
	var errs []error
	seen := make(map[string]bool)
	for _, m := range ms {
		_, err := m.mutated(root)
		switch {
		case m.rule == "" || m.what == "" || m.run == "":
			err = errors.New("a line is not complete")
		case seen[m.rule+m.what]:
			err = errors.New("there are two of these")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s, %s: %w", m.rule, m.what, err))
		}
		seen[m.rule+m.what] = true
	}
	if len(ms) == 0 {
		errs = append(errs, errors.New("no mutant has such a name"))
	}
	return errors.Join(errs...)
}
