package idem_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// The presets against what is documented of the contracts they are named after:
// each preset's table says what every situation comes to, whole: status, how
// often the handler has run, headers, body. The tables are in the files named
// for the presets.

// desk is a client and an endpoint under a preset. Its time is a bubble's, so
// that the lifetimes and waits that are told are exact.
type desk struct {
	*testing.T
	preset func(*idem.Options)
	key    string // as this contract has it: bare, or in quotes
	also   string // another method than POST
	engine *idem.Engine
	runs   int
}

// options begins anew, with more options.
func (d *desk) options(more ...func(*idem.Options)) { d.store(&idem.MemoryStore{}, more...) }

func (d *desk) store(s store.Store, more ...func(*idem.Options)) {
	d.engine = idem.New(s, append([]func(*idem.Options){d.preset}, more...)...)
}

// ask sends a request and lets the handler do what fn does.
func (d *desk) ask(r idem.Request, fn func(context.Context) (idem.Response, error)) idem.Result {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), 20*time.Second)
	defer cancel()
	return d.askIn(ctx, r, fn)
}

func (d *desk) askIn(ctx context.Context, r idem.Request, fn func(context.Context) (idem.Response, error)) idem.Result {
	d.Helper()
	res, err := d.engine.Serve(ctx, r, func(ctx context.Context) (idem.Response, error) {
		d.runs++
		return fn(ctx)
	})
	if err != nil && !res.Passed {
		d.Fatal(err)
	}
	return res
}

// testPreset plays every situation and compares what the client gets.
func testPreset(t *testing.T, d desk, want map[string]string) {
	t.Helper()
	for name := range want {
		if situations[name] == nil {
			t.Errorf("there is no situation %q", name)
		}
	}
	for name, play := range situations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := d
				d.T = t
				d.options()
				res := play(&d)
				if diff := cmp.Diff(strings.Split(want[name], "\n"), strings.Split(printed(d.runs, res), "\n")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// printed is an answer as the tables have it.
func printed(runs int, r idem.Result) string {
	lines := []string{fmt.Sprintf("%d after %d runs", r.Status, runs)}
	for name, values := range r.Header {
		for _, v := range values {
			lines = append(lines, name+": "+v)
		}
	}
	slices.Sort(lines[1:])
	return strings.Join(append(lines, string(r.Body)), "\n")
}

// The answers that all presets share.

const made = `{"id":"ch_1"}`

// untouched is the handler's own answer: nothing was done with a key.
func untouched(runs int) string {
	return fmt.Sprintf("201 after %d runs\nContent-Type: application/json\nSet-Cookie: a=b\n%s", runs, made)
}

// limited is what a rate limiter behind the engine answered: untouched but for
// the echo, and no lifetime, since the key is free (R96).
func limited(key string) string {
	return "429 after 1 runs\nContent-Type: application/json\nIdempotency-Key: " + key +
		"\nRetry-After: 1\nSet-Cookie: a=b\nStripe-Rate-Limited-Reason: global-rate\nStripe-Should-Retry: true\nslow down"
}
