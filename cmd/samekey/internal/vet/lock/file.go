// Package lock keeps the phases of handlers and the meaning of keys in a lock file, and
// finds the changes that endanger earlier operations.
package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"io/fs"
	"os"
)

// Phase holds the properties of a phase on which a resumed run depends.
type Phase struct {
	// Name is the phase's name, with * for each part that isn't constant.
	Name string `json:"phase"`
	// Kind is Atomic or Foreign.
	Kind string `json:"kind"`
	// NotIdempotent says that the phase has the option idem.NotIdempotent.
	NotIdempotent bool `json:"notIdempotent,omitempty"`
	// Remembers is the time that the option idem.Remembers sets, in seconds. It is 0 if
	// the phase doesn't have this option, or the time is unknown.
	Remembers int64 `json:"remembers,omitempty"`
	// Calls are the names of the calls for which the phase derives keys, in alphabetical
	// order. A name has the form service or service/step, with * for parts that aren't
	// constant.
	Calls []string `json:"calls,omitempty"`
	// Result is the shape of the phase's result. If Result is nil, the shape is
	// unknown, and every result fits.
	Result Shape `json:"result,omitempty"`
}

// Handler is a handler of the program, and the phases that it may run, in source
// order.
type Handler struct {
	Package, Name string
	Pos           token.Position
	Phases        []Phase
	// Before says whether phase i may run before phase j.
	Before func(i, j int) bool
}

// Program is the present program, to be compared with a lock file.
type Program struct {
	Handlers []Handler
	Engines  []Engine
}

// File is the content of a lock file. Packages holds the phases of each handler, by
// package and by the handler's name. Engines holds the meaning of each engine's keys,
// by package and by the engine's name.
type File struct {
	Version  int                           `json:"version"`
	Packages map[string]map[string][]Phase `json:"packages"`
	Engines  map[string]map[string]Meaning `json:"engines,omitempty"`
}

const version = 1

// Read reads a lock file. A missing file counts as a file without handlers and engines.
func Read(path string) (*File, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{Version: version}, nil
	}
	if err != nil {
		return nil, err
	}
	f := new(File)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("%s is not a lock file: %w", path, err)
	}
	if f.Version != version {
		return nil, fmt.Errorf("%s has version %d, but this samekey reads version %d", path, f.Version, version)
	}
	return f, nil
}

// Write writes a lock file.
func (f *File) Write(path string) error {
	raw, err := f.text()
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644) //nolint:gosec // it belongs into the repository, for all to read
}

func (f *File) text() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(f)
	return b.Bytes(), err
}

// Updated returns a new file with the present handlers and engines. Packages that exist but
// were not loaded stay as they are in f. The function loaded reports whether a package was
// loaded; the function gone reports whether a package no longer exists.
func (f *File) Updated(now Program, loaded, gone func(pkg string) bool) *File {
	next := &File{Version: version, Packages: make(map[string]map[string][]Phase), Engines: make(map[string]map[string]Meaning)}
	for pkg, handlers := range f.Packages {
		if !loaded(pkg) && !gone(pkg) {
			next.Packages[pkg] = handlers
		}
	}
	for pkg, engines := range f.Engines {
		if !loaded(pkg) && !gone(pkg) {
			next.Engines[pkg] = engines
		}
	}
	for _, e := range now.Engines {
		if next.Engines[e.Package] == nil {
			next.Engines[e.Package] = make(map[string]Meaning)
		}
		next.Engines[e.Package][e.Name] = e.Meaning
	}
	for _, h := range now.Handlers {
		if next.Packages[h.Package] == nil {
			next.Packages[h.Package] = make(map[string][]Phase)
		}
		next.Packages[h.Package][h.Name] = h.Phases
	}
	return next
}

// Equal reports whether two files have the same content.
func (f *File) Equal(g *File) bool {
	a, err1 := f.text()
	b, err2 := g.text()
	return err1 == nil && err2 == nil && bytes.Equal(a, b)
}
