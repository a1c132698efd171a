package lambda_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// An answer stored through one source must come out right through every other,
// for the same request in each one's spelling (A16).
func TestA16ReplayAcrossSources(t *testing.T) {
	t.Parallel()
	const png = "\x89PNG\r\n\x1a\n\x00\xff"
	handle := func(context.Context, []byte) (idem.Response, error) {
		return idem.Response{
			Status: 201,
			Header: http.Header{
				"Content-Type": {"image/png"},
				"Link":         {"</rides/1>; rel=self", "</rides>; rel=up"},
				"Set-Cookie":   {"a=1; Path=/", "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT"},
				"X-Secret":     {"not stored"},
			},
			Body: []byte(png),
		}, nil
	}
	request := func() call {
		c := newCall("k")
		c.path = "/riders/zo%C3%AB%40example.com/rides%20now"
		c.query = "tag=b%20c&dry_run=false"
		c.header = http.Header{
			"IDEMPOTENCY-key": {"k"}, // as sent; most sources spell it anew
			"Content-Type":    {"application/json"},
			"X-Tag":           {"one", "two"},
			"Cookie":          {"session=7f3a; theme=dark"},
		}
		return c
	}
	for _, first := range sources {
		for _, second := range sources {
			t.Run(first.name+" then "+second.name, func(t *testing.T) {
				t.Parallel()
				h, runs := counted(handle)
				e := idem.New(&idem.MemoryStore{}, callertest.Anybody) // they have hosts of their own

				was := first.send(t, first.wrap(e, h), request())
				was.accepted(t, 201, png, false)
				if got, want := was.value("Link"), "</rides/1>; rel=self, </rides>; rel=up"; got != want {
					t.Errorf("first: Link is %q, want %q", got, want)
				}
				cookies := "a=1; Path=/, b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT"
				if first.name == albSingle.name {
					cookies = "b=2; Expires=Wed, 21 Oct 2026 07:28:00 GMT" // it has room for one
				}
				if got := was.value("Set-Cookie"); got != cookies {
					t.Errorf("first: Set-Cookie is %q, want %q", got, cookies)
				}

				c := request()
				c.base64 = true
				c.query = "dry_run=false&tag=b+c"
				is := second.send(t, second.wrap(e, h), c)
				is.accepted(t, 201, png, true)
				for _, name := range []string{"Content-Type", "Link", "Idempotency-Key", "Idempotency-Expires"} {
					if got, want := is.value(name), was.value(name); got != want || want == "" {
						t.Errorf("replay: %s is %q, was %q", name, got, want)
					}
				}
				for _, name := range []string{"Set-Cookie", "X-Secret"} {
					if got := is.value(name); got != "" {
						t.Errorf("replay: %s is %q, want none", name, got)
					}
				}
				ran(t, runs, 1)
			})
		}
	}
}

// One key, all sources, all at once: one of them runs the handler.
func TestConcurrentSources(t *testing.T) {
	t.Parallel()
	const rounds = 10
	h, runs := counted(created)
	e := idem.New(&idem.MemoryStore{}, callertest.Anybody) // they have hosts of their own
	outs, errs := make([][]byte, rounds*len(sources)), make([]error, rounds*len(sources))
	var wg sync.WaitGroup
	for i := range outs {
		s := sources[i%len(sources)]
		payload := s.payload(t, newCall("k"))
		wg.Go(func() { outs[i], errs[i] = s.wrap(e, h).Invoke(t.Context(), payload) })
	}
	wg.Wait()
	first := 0
	for i, out := range outs {
		if errs[i] != nil {
			t.Errorf("Invoke: %v", errs[i])
			continue
		}
		switch a := sources[i%len(sources)].result(t, out); {
		case a.status == http.StatusConflict:
			a.refused(t, 409, "idempotency_in_flight")
		case a.value(idem.ReplayedHeader) == "true":
			a.accepted(t, 201, createdBody, true)
		default:
			a.accepted(t, 201, createdBody, false)
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d answers that are no replays, want 1", first)
	}
	ran(t, runs, 1)
}
