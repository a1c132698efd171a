package pages_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
)

// observed: what a route in observe mode tells of each situation.
func observed(t *testing.T) string {
	tb := table{Head: []string{"situation", "`Hooks.Observed`: `Event.Err` is"}}
	names := []struct {
		err  error
		name string
	}{
		{idem.ErrKeyMissing, "ErrKeyMissing"},
		{idem.ErrKeyInvalid, "ErrKeyInvalid"},
		{idem.ErrReplay, "ErrReplay"},
		{idem.ErrMismatch, "ErrMismatch"},
		{idem.ErrInFlight, "ErrInFlight"},
		{idem.ErrUnavailable, "ErrUnavailable"},
		{idem.ErrScope, "ErrScope"},
		{idem.ErrNoTime, "ErrNoTime"},
	}
	for _, sit := range situations {
		var told []error
		opt := func(o *idem.Options) {
			if sit.opt != nil {
				sit.opt(o)
			}
			o.Mode = idem.ModeObserve
			o.Hooks.Observed = func(_ context.Context, ev idem.Event) { told = append(told, ev.Err) }
		}
		if sit.opt != nil || slices.Contains([]string{
			"other requests keep changing a phase's items", "a call to another system has an unknown outcome", "the same request after such a call", "the fingerprint's secret or scheme is unknown",
			"a body that isn't valid base64", "a body over `MaxRequest` (net/http)", "the lease ended, and another attempt took over but failed",
			"the record is damaged", "a known key, after the quota is used up", "the same request after the key's lifetime",
			"the same request again, after `MinKey` was raised above the key's length", "a body over `MaxRequest`, with a known key",
		}, sit.name) {
			continue // not for handlers with phases; or nothing new
		}
		play(t, contracts[0], opt, func(s *stage) {
			o := sit.act(s)
			if !o.ran {
				t.Errorf("%s: the handler didn't run", sit.name)
			}
			name := "not called"
			if len(told) > 0 {
				name = ""
				for _, n := range names {
					if errors.Is(told[len(told)-1], n.err) {
						name = code("idem." + n.name)
					}
				}
			}
			if name == "" || len(told) > 1 {
				t.Errorf("%s: told %v", sit.name, told)
			}
			if len(told) > 0 && !sit.hidden {
				tb.Add(sit.name, name)
			}
		})
	}
	tb.Add("any other request", "not called")
	return tb.String()
}
