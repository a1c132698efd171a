package stream

import (
	"slices"
	"testing"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

// A job waits for the earlier jobs of its group only, which aren't in its batch.
func TestJobWaitsForItsGroupOnly(t *testing.T) {
	t.Parallel()
	d := &Drain{sink: jobs.Route{}}
	todo := &todo{image: &store.Record{ID: "o", Jobs: map[string]store.Job{
		"0.0": {Kind: "a", Group: "g"}, "0.1": {Kind: "a", Group: "h"}, "0.2": {Kind: "a", Group: "g"}, "0.3": {Kind: "a"},
		"0.4": {Kind: "a", Group: "h"}, "0.5": {Kind: "a", Group: "g", Failed: "parked"}, "0.6": {Kind: "a", Group: "g"},
	}}, jobs: []jobRef{{name: "0.2"}, {name: "0.6"}}}
	for name, want := range map[string][]string{"0.0": nil, "0.1": nil, "0.2": {"0.0"}, "0.3": nil, "0.4": {"0.1"}, "0.6": {"0.0"}} {
		if got := d.ahead(todo, name); !slices.Equal(got, want) {
			t.Errorf("%s waits for %v, want %v", name, got, want)
		}
	}
}
