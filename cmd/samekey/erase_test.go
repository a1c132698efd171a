package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/cli/explain"
	"github.com/samekey/samekey/internal/testkit/storetest"
)

// of is a request of a caller; its answers hold the words secret and its name.
func of(caller, key string) idem.Request {
	r := request()
	r.Key, r.Identity.Subject = key, caller
	return r
}

// What a person's finished requests have left goes: in the records, beside them and
// sealed. The keys stay taken, others' records stay whole, and what isn't finished stays
// until somebody decides.
func TestErase(t *testing.T) {
	for name, sealed := range map[string]bool{"plain": false, "sealed": true} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			if sealed {
				d.sealed(t)
			}
			answer := func(caller, key string, body []byte, staged ...idem.Job) error {
				_, err := d.engine.Do(t.Context(), of(caller, key), func(ctx context.Context) (idem.Response, error) {
					if err := idem.Stage(ctx, staged...); len(staged) > 0 && err != nil {
						return idem.Response{}, err
					}
					return idem.Response{Status: 201, Body: body}, nil
				})
				return err
			}
			large := storetest.Noise(100 << 10)
			for key, body := range map[string][]byte{"small-key-of-jane": []byte("secret"), "large-key-of-jane": large} {
				if err := errors.Join(answer("jane", key, body), answer("omar", key, body)); err != nil {
					t.Fatal(err)
				}
			}
			if err := answer("jane", "key-with-a-job", nil, idem.NewJob("mail", "jane's address")); err != nil {
				t.Fatal(err)
			}
			others := func() (all []map[string]types.AttributeValue, contents int) {
				for _, it := range d.items(t) {
					if it["b"] != nil {
						contents++
					}
					all = append(all, it)
				}
				return all, contents
			}
			_, before := others()

			if sealed {
				code, stdout, _ := call(t, d.env, "erase", "--caller", "jwt:jane", "--yes", "--pages", "1000")
				if _, after := others(); code != 3 || !strings.Contains(stdout, "5 sealed records") || after != before {
					t.Errorf("without the keys: code %d, %s", code, stdout)
				}
				d.keysFrom(t, "desk")
			}
			code, stdout, stderr := call(t, d.env, "erase", "--caller", "jwt:jane", "--dry-run", "--pages", "1000")
			if code != 3 || !strings.Contains(stdout, "erased: 0") || !strings.Contains(stderr, "are erased: 2.") {
				t.Errorf("the dry run: code %d, %s%s", code, stdout, stderr)
			}
			code, stdout, stderr = call(t, d.env, "erase", "--caller", "jwt:jane", "--yes", "--pages", "1000")
			if code != 3 || !strings.Contains(stdout, "erased: 2") || !strings.Contains(stdout, "jobs that are not delivered") || strings.Count(stdout, "v1#rides#") != 1 {
				t.Errorf("code %d, %s%s", code, stdout, stderr)
			}
			if _, after := others(); after != before/2 {
				t.Errorf("%d companions are left of %d, want omar's", after, before)
			}
			for key, body := range map[string][]byte{"small-key-of-jane": []byte("secret"), "large-key-of-jane": large} {
				again := func(r idem.Request) (idem.Result, error) {
					return d.engine.Do(t.Context(), r, func(context.Context) (idem.Response, error) {
						t.Error("it runs again")
						return idem.Response{}, nil
					})
				}
				if _, err := again(of("jane", key)); !errors.Is(err, idem.ErrNotKept) {
					t.Errorf("jane's retry got %v", err)
				}
				other := of("jane", key)
				other.Body = []byte("another")
				if _, err := again(other); !errors.Is(err, idem.ErrMismatch) {
					t.Errorf("jane's other request got %v", err)
				}
				if res, err := again(of("omar", key)); err != nil || string(res.Body) != string(body) {
					t.Errorf("omar's retry got %d bytes, %v", len(res.Body), err)
				}
				var story explain.Story
				if err := json.Unmarshal([]byte(d.ok(t, "get", "--json", "--key", key, "--scope", "jwt:jane")), &story); err != nil {
					t.Fatal(err)
				}
				rec, err := d.store.Load(t.Context(), story.Record)
				if err != nil || rec.Scope != "" || rec.Response == nil || rec.Response.Status != 201 || len(rec.Response.Body) > 0 ||
					len(rec.Settled) != 1 || rec.Settled[0].By != "jane" || rec.Settled[0].What != "erase" {
					t.Errorf("the record is %+v, %v", rec, err)
				}
			}
			code, stdout, _ = call(t, d.env, "erase", "--caller", "jwt:jane", "--yes", "--pages", "1000")
			if code != 3 || !strings.Contains(stdout, "erased: 0") {
				t.Errorf("the second time: code %d, %s", code, stdout)
			}
		})
	}
	d := newDesk(t)
	d.fails(t, 2, "--caller names the scope", "erase")
	if out := d.ok(t, "erase", "--caller", "jwt:nobody"); !strings.Contains(out, "erased: 0") {
		t.Error(out)
	}
}

// An operation that isn't finished, or that somebody has written since, isn't erased.
func TestEraseOnlyWhatIsAsSeen(t *testing.T) {
	t.Parallel()
	mem := &idem.MemoryStore{}
	e := idem.New(mem, anybody)
	only := func() *store.Record {
		for _, r := range mem.Records() {
			return r
		}
		return nil
	}
	if _, err := e.Do(t.Context(), of("jane", customersKey), func(context.Context) (idem.Response, error) {
		if err := e.Erase(t.Context(), jobs.TicketFor(only()), "jane"); !errors.Is(err, jobs.ErrMoved) {
			t.Errorf("got %v for an operation under way", err)
		}
		return idem.Response{Status: 201, Body: []byte("secret")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	seen := jobs.TicketFor(only())
	stale := seen
	stale.Ver--
	if err := e.Erase(t.Context(), stale, "jane"); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("got %v for a record that has moved", err)
	}
	if err := e.Erase(t.Context(), seen, "jane"); err != nil {
		t.Fatal(err)
	}
	if r := only(); r.Scope != "" || len(r.Response.Body) > 0 {
		t.Errorf("got %+v", r)
	}
	if err := e.Erase(t.Context(), jobs.TicketFor(only()), "jane"); !errors.Is(err, jobs.ErrMoved) {
		t.Errorf("got %v for the second time", err)
	}
}
