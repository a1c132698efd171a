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
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// The presets against the documentation of their contracts. Each preset's table
// has the complete outcome of every situation: status, number of the handler's
// runs, headers, body. Each table is in the file named after its preset.

// desk is a client and an endpoint under a preset. Its time is the bubble's, so
// that reported lifetimes and waits are exact.
type desk struct {
	*testing.T
	preset func(*idem.Options)
	key    string // in the contract's form: bare or in quotes
	also   string // a method besides POST
	engine *idem.Engine
	runs   int
}

// options starts again, with more options.
func (d *desk) options(more ...func(*idem.Options)) { d.store(&idem.MemoryStore{}, more...) }

func (d *desk) store(s store.Store, more ...func(*idem.Options)) {
	d.engine = idem.New(s, append([]func(*idem.Options){callertest.Anybody, d.preset}, more...)...)
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

// printed is an answer in the form of the tables.
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

// Answers that all presets share.

const made = `{"id":"ch_1"}`

// unprotected is the handler's own answer to a request whose key the engine left alone,
// which the answer says.
func unprotected(runs int) string {
	return fmt.Sprintf("201 after %d runs\nContent-Type: application/json\nIdempotency-Status: ignored\nSet-Cookie: a=b\n%s", runs, made)
}

// untouched is the handler's own answer to a request without a key.
func untouched(runs int) string {
	return fmt.Sprintf("201 after %d runs\nContent-Type: application/json\nSet-Cookie: a=b\n%s", runs, made)
}

// limited is the answer of a rate limiter behind the engine: untouched but for
// the echo, and without a lifetime, since the key is free (R96).
func limited(key string) string {
	return "429 after 1 runs\nContent-Type: application/json\nIdempotency-Key: " + key +
		"\nRetry-After: 1\nSet-Cookie: a=b\nStripe-Rate-Limited-Reason: global-rate\nStripe-Should-Retry: true\nslow down"
}
