package stack

import (
	"bytes"
	"context"
	"os"
	"slices"
	"time"

	"github.com/samekey/samekey/internal/local/sam"
)

// These variables bring overrides to the functions. An override has no effect if no
// program reads its variable.
const (
	envLeaseMargin = "SAMEKEY_LEASE_MARGIN"
	envGrace       = "SAMEKEY_GRACE"
)

// tellOverrides warns of each override that has no effect.
func (s *Stack) tellOverrides(ctx context.Context, defs []sam.Function) {
	o := s.opts.Overrides
	for _, v := range []struct {
		set            *time.Duration
		name, variable string
	}{{o.LeaseMargin, "LOCAL_LEASE_MARGIN", envLeaseMargin}, {o.Grace, "LOCAL_GRACE", envGrace}} {
		reads := func(f sam.Function) bool { return mentions(f.Bootstrap, v.variable) }
		if v.set != nil && !slices.ContainsFunc(defs, reads) {
			s.log.WarnContext(ctx, v.name+" has no effect: no function's program reads "+v.variable)
		}
	}
	has := func(kind func(sam.Event) bool) bool {
		return slices.ContainsFunc(defs, func(f sam.Function) bool { return slices.ContainsFunc(f.Events, kind) })
	}
	if o.StreamWindow != nil && !has(func(e sam.Event) bool { return e.Stream != nil }) {
		s.log.WarnContext(ctx, "LOCAL_STREAM_WINDOW has no effect: no function reads a stream")
	}
	if o.SweepEvery != nil && !has(func(e sam.Event) bool { return e.Schedule != nil }) {
		s.log.WarnContext(ctx, "LOCAL_SWEEP_EVERY has no effect: no function has a schedule")
	}
}

// mentions reports whether the program at path contains a variable's name (text). A compiled
// program contains the names of the variables that it reads. If the program can't be read,
// mentions returns true.
func mentions(path, text string) bool {
	program, err := os.ReadFile(path)
	return err != nil || bytes.Contains(program, []byte(text))
}
