package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// mutant is the code with one rule switched off.
type mutant struct {
	rule string // the model's name, or a name for a fence that the model doesn't have
	what string // what the mutant does

	// in is the declaration that is changed, "idem/client.Operation.wait": the package
	// from the module's root, and the function, Type.Method, constant, variable or type.
	in string
	// old is the piece of Go that is replaced, which must be in the declaration once.
	// Its layout doesn't matter. $x stands for an identifier that belongs to the
	// declaration (a parameter, a variable, a label), for the same one each time;
	// anything else is taken literally. A string may leave out its begin or its end:
	// "… AND ver = :ver".
	old string
	// new has each $x and … of old. Identifiers that it adds have no $.
	new string
	// where is another piece of the declaration, found as old is, that says what
	// further $x of old and new are: "func ($s *Store)".
	where string

	pkg  string // the package of the tests, "internal/testkit/enginetest"; "": that of in
	run  string // go test -run
	hang bool   // the tests notice by never ending

	// refused says that the service refuses the mutant's request, and that this is
	// what the tests have to notice. Otherwise a refusal is a mistake of the table:
	// an expression that isn't valid proves nothing about its condition.
	refused bool
}

func (m mutant) tests() target {
	if m.pkg == "" {
		return target{m.dir(), m.run}
	}
	return target{m.pkg, m.run}
}

// target are some tests of a package.
type target struct{ pkg, run string }

// table is every mutant there is.
func table() []mutant {
	return slices.Concat(whoseMutants(), operationMutants(), recordMutants(), engineMutants(), phaseMutants(), resumeMutants(), storeMutants(), bodyMutants(), sealMutants(), writeMutants(), indexMutants(),
		jobMutants(), streamMutants(), sinkMutants(), callerMutants(), formerMutants(), waitMutants(), panicMutants(), patienceMutants(), clientMutants(), renewMutants(), keyMutants(), envelopeMutants(), corsMutants(), bodyKeyMutants(), shareMutants(), tenantMutants(), heldMutants(), quotaMutants(), rotationMutants(), adapterMutants(), webhookMutants(), transportMutants(), ticketMutants(), eachMutants(), faultMutants(),
		keyRowMutants(), answerRowMutants(), workRowMutants(), outerRowMutants(), foundMutants(), commerceMutants(), lookMutants())
}

// dir is the folder of the changed package, from the module's root.
func (m mutant) dir() string {
	dir, _ := m.place()
	return dir
}

// place cuts in into the package and the name of the declaration.
func (m mutant) place() (dir, name string) {
	slash := strings.LastIndex(m.in, "/") + 1
	last, name, _ := strings.Cut(m.in[slash:], ".")
	return m.in[:slash] + last, name
}

// mutated returns the file that m changes, and its text with the rule off.
func (s *source) mutated(m mutant) (file string, text []byte, err error) {
	dir, name := m.place()
	if n := len(s.decls[name]); n != 1 {
		return "", nil, fmt.Errorf("%s has %d declarations with the name %q, want one", dir, n, name)
	}
	d := s.decls[name][0]
	bound := binding{}
	if m.where != "" {
		if _, _, bound, err = find(d.words, m.where, bound); err != nil {
			return "", nil, fmt.Errorf("where, in %s: %w", m.in, err)
		}
	}
	begin, end, bound, err := find(d.words, m.old, bound)
	if err != nil {
		return "", nil, fmt.Errorf("old, in %s: %w", m.in, err)
	}
	replacement, err := bound.fill(m.new)
	if err != nil {
		return "", nil, fmt.Errorf("new, in %s: %w", m.in, err)
	}
	from, to := d.words[begin].from, d.words[end-1].to
	was := s.text[d.file]
	if string(was[from:to]) == replacement {
		return "", nil, fmt.Errorf("in %s: nothing is changed: %s", m.in, m.old)
	}
	return path.Join(dir, d.file), slices.Concat(was[:from], []byte(replacement), d.keepLines(was, from, to, replacement)), nil
}

// keepLines returns the text that follows a replaced piece. Where the replacement has
// fewer lines, empty ones follow its line: the lines of other declarations are a part
// of what a package offers to its importers.
func (d decl) keepLines(was []byte, from, to int, replacement string) []byte {
	less := bytes.Count(was[from:to], []byte("\n")) - strings.Count(replacement, "\n")
	end := bytes.IndexByte(was[to:], '\n')
	inString := slices.ContainsFunc(d.words, func(w word) bool { return w.from < to+end && to+end < w.to })
	if less <= 0 || end < 0 || inString {
		return was[to:]
	}
	return slices.Concat(was[to:to+end], bytes.Repeat([]byte("\n"), less), was[to+end:])
}

// fitting returns the mutants whose code is there, and names the others.
func fitting(root string, ms []mutant, w io.Writer) []mutant {
	return slices.DeleteFunc(slices.Clone(ms), func(m mutant) bool {
		err := check(root, []mutant{m})
		if err != nil {
			fmt.Fprintln(w, "left out:", err)
		}
		return err != nil
	})
}

// check finds what is wrong with a table without running anything.
func check(root string, ms []mutant) error {
	var errs []error
	seen := make(map[string]bool)
	sources := make(map[string]*source)
	for _, m := range ms {
		var err error
		s := sources[m.dir()]
		if s == nil {
			if s, err = load(root, m.dir()); err == nil {
				sources[m.dir()] = s
			}
		}
		if err == nil {
			_, _, err = s.mutated(m)
		}
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
