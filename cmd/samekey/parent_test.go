package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A parent that blocks its signals for a moment, as in each fork of Python, ends
// nothing. A parent that blocks them for longer, or has ended, ends the context.
func TestParentThatForks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lives, dying func(after time.Duration) bool
		ends         time.Duration // zero: not within a minute
	}{
		"forks at each look but one": {nil, func(after time.Duration) bool { return after%(5*parentPoll) != 0 }, 0},
		"forks once":                 {nil, func(after time.Duration) bool { return after < parentPoll }, 0},
		"is told to end":             {nil, func(after time.Duration) bool { return after >= time.Second }, time.Second + 5*parentPoll},
		"has ended":                  {func(after time.Duration) bool { return after < time.Second }, nil, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				when := func(is func(time.Duration) bool, otherwise bool) func() bool {
					return func() bool {
						if is == nil {
							return otherwise
						}
						return is(time.Since(began))
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				followParent(ctx, when(tt.lives, true), when(tt.dying, false))
				if took := time.Since(began); tt.ends == 0 && ctx.Err() == nil || tt.ends != 0 && took != tt.ends {
					t.Errorf("ended after %v", took)
				}
			})
		})
	}
}
