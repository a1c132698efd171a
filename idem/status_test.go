package idem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
)

// A status that can't be had is an error, and not that the key is unknown.
func TestStatusThatCannotBeHad(t *testing.T) {
	t.Parallel()
	loads := func(rec *store.Record, errs ...error) func(context.Context, string) (*store.Record, error) {
		n := 0
		return func(context.Context, string) (*store.Record, error) {
			if n++; n > len(errs) {
				return rec, nil
			}
			return nil, errs[n-1]
		}
	}
	twoPlaces := func(o *idem.Options) { o.Former = &idem.Former{OneScope: true} }
	for name, tt := range map[string]struct {
		opt  func(*idem.Options)
		load func(context.Context, string) (*store.Record, error)
		left time.Duration
		want error
	}{
		"the store is down":          {asIs, loads(nil, errDown), time.Minute, idem.ErrUnavailable},
		"one of two reads fails":     {twoPlaces, loads(nil, errDown), time.Minute, idem.ErrUnavailable},
		"the record can't be judged": {asIs, loads(&store.Record{State: store.Done}), time.Minute, idem.ErrCorrupt},
		"it isn't known whose it was": {func(o *idem.Options) {
			o.Former = &idem.Former{Scope: func(context.Context, *idem.Request) (string, error) { return "", errDown }}
		}, loads(nil), time.Minute, errDown},
		"nobody has used it":           {asIs, loads(nil), time.Minute, idem.ErrKeyUnknown},
		"nobody has used it, anywhere": {twoPlaces, loads(nil), time.Minute, idem.ErrKeyUnknown},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), tt.left)
		defer cancel()
		e := idem.New(&spoilt{Store: &idem.MemoryStore{}, load: tt.load}, tt.opt)
		if res, err := e.Status(ctx, ordered("")); !errors.Is(err, tt.want) {
			t.Errorf("%s: %+v, %v, want %v", name, res, err, tt.want)
		}
	}
}

// Without a status resource, a verified caller's program still sees the operation: the
// answer has no place to go to.
func TestStatusWithoutAResource(t *testing.T) {
	t.Parallel()
	clock := idemtest.NewClock()
	var mem idem.MemoryStore
	e := idem.New(&mem, func(o *idem.Options) { o.Now = clock.Now })
	r := ordered("{}")
	_, err := e.Do(t.Context(), r, func(context.Context) (idem.Response, error) {
		if res, err := e.Status(t.Context(), r); err != nil || res.Status != 202 || res.Header["Location"] != nil {
			t.Errorf("in flight: %+v, %v", res, err)
		}
		clock.Advance(time.Hour)
		_, err := e.Status(t.Context(), r)
		if lost, ok := errors.AsType[*idem.Error](err); !ok || !errors.Is(err, idem.ErrUnfinished) || lost.RetryAfter != 0 {
			t.Errorf("after its lease: %v", err)
		}
		return idem.Response{Status: 201}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := e.Status(t.Context(), r); err != nil || res.Status != 201 || !res.Replayed {
		t.Errorf("at the end: %+v, %v", res, err)
	}
	if res := e.ServeStatus(t.Context(), idem.Request{Method: "GET", Path: "/" + r.Key, Identity: r.Identity}); res.Status != 400 {
		t.Errorf("a path is no key: %d %s", res.Status, res.Body)
	}
}

// The status is read, in the contract's words, also by a page of another origin.
func TestStatusIsOfTheContract(t *testing.T) {
	t.Parallel()
	const origin = "https://shop.example"
	e := idem.New(&idem.MemoryStore{}, idem.StripeV1, func(o *idem.Options) {
		o.StatusURL, o.CORS = "/operations/", idem.CORS{Origins: []string{origin}}
		o.Scope = func(context.Context, *idem.Request) (string, error) { return "jane", nil }
	})
	r := request
	r.Key, r.Path = "a-random-key-of-an-order", "/orders"
	_, err := e.Do(t.Context(), r, func(context.Context) (idem.Response, error) {
		return idem.Response{Status: 201, Header: http.Header{"Request-Id": {"req_1"}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]int{"GET": 201, "HEAD": 201, "POST": 405, "DELETE": 405} {
		res := e.ServeStatus(t.Context(), idem.Request{
			Method: method, Path: "/operations/" + r.Key, Header: http.Header{"Origin": {origin}},
		})
		if res.Status != want || want == 405 && res.Header.Get("Access-Control-Allow-Origin") != origin || want == 201 && res.Header.Get("Original-Request") != "req_1" {
			t.Errorf("%s: %d %v", method, res.Status, res.Header)
		}
	}
}
