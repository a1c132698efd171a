package idem

import (
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"
)

// step is a phase as the handler requested it.
type step struct {
	kind   stepKind
	name   string
	intent bool          // NotIdempotent
	memory time.Duration // how long a call may be repeated
	sends  []send
	result reflect.Type // nil for the finish
	look   *look        // how to ask for the outcome of its call; nil without LookUp
}

type stepKind int

const (
	atomically stepKind = iota
	foreign
	last
)

// maxPhaseName is the longest name of a phase, in bytes.
const maxPhaseName = 100

// send is the data that one call of a phase sends.
type send struct {
	service string
	step    []string
	v       any
}

func (s step) check() error {
	switch {
	case s.kind == last:
	case s.name == "" || len(s.name) > maxPhaseName || !utf8.ValidString(s.name):
		return fmt.Errorf("%w: the name %q: 1 to %d bytes of UTF-8", ErrPhaseOrder, s.name, maxPhaseName)
	}
	return nil
}
