package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/client"
)

func open(t *testing.T, path string) *client.FileJournal {
	t.Helper()
	j, err := client.OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func journalFile(t *testing.T) string { return filepath.Join(t.TempDir(), "operations") }

func with(j client.Journal) func(*client.Options) {
	return func(o *client.Options) { o.Journal = j }
}

// named returns a request of the operation.
func named(t *testing.T, method, operation, body string) *http.Request {
	t.Helper()
	req := request(t, method, body)
	return req.WithContext(client.WithOperation(req.Context(), operation))
}

// crash leaves the journal like a process that dies.
func crash(t *testing.T, j *client.FileJournal) {
	t.Helper()
	if err := j.Close(); err != nil { // writes nothing
		t.Fatal(err)
	}
}

func TestOperationIsResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := journalFile(t)
		j := open(t, path)
		s := &script{steps: []step{failing(errReset)}}
		first := failure(t, client.New(s, with(j)), named(t, "POST", "order-42", "x"))
		status(t, client.New(&script{steps: []step{answer(201)}}, with(j)), named(t, "POST", "order-43", "x"))
		crash(t, j)

		j = open(t, path)
		entries := j.Entries()
		if len(entries) != 2 || entries[0].Operation != "order-42" || entries[0].Key != first.Key || !entries[0].Answered.IsZero() ||
			entries[1].Status != 201 || entries[1].Answered.IsZero() {
			t.Fatalf("entries %+v", entries)
		}
		c := &counts{}
		s = &script{steps: []step{answer(201)}}
		tr := client.New(s, with(j), func(o *client.Options) { o.Hooks = c.hooks() })
		status(t, tr, named(t, "POST", "order-42", "x"))
		if got := s.attempts()[0].Key; got != first.Key || c.of("resumed") != 1 || c.of("key") != 0 {
			t.Errorf("key %q, want the first one's %q (%v)", got, first.Key, c.n)
		}

		// Only Done ends the operation, not an answer.
		status(t, tr, named(t, "POST", "order-42", "x"))
		if err := j.Done("order-42"); err != nil {
			t.Fatal(err)
		}
		status(t, tr, named(t, "POST", "order-42", "y"))
		seen := s.attempts()
		if seen[1].Key != first.Key || seen[2].Key == first.Key || c.of("key") != 1 {
			t.Errorf("keys %q, %q after Done; want the same, then a new one", seen[1].Key, seen[2].Key)
		}
	})
}

func TestOperationIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := open(t, journalFile(t))
		s := &script{steps: []step{answer(200)}}
		tr := client.New(s, with(j))
		status(t, tr, named(t, "POST", "order-42", "x"))

		other := named(t, "POST", "order-42", "x")
		other.URL.Path = "/ordera"
		host := named(t, "POST", "order-42", "x")
		host.URL.Host = "apj.test"
		ownKey := named(t, "POST", "order-42", "x")
		ownKey.Header.Set(keyHeader, "mine")
		virtual := named(t, "POST", "order-42", "x")
		virtual.Host = "apj.test"
		badKey := named(t, "POST", "order-42", "x")
		badKey.Header.Set(keyHeader, "a\tb")
		noURL := named(t, "POST", "order-42", "x")
		noURL.URL = nil
		over, cancel := context.WithCancel(client.WithOperation(t.Context(), "order-42"))
		cancel()
		long := named(t, "POST", "order-42", "")
		long.Body, long.GetBody, long.ContentLength = io.NopCloser(strings.NewReader("x")), nil, 1
		for name, tt := range map[string]struct {
			req  *http.Request
			tr   *client.Transport
			want error
		}{
			"another body":   {req: named(t, "POST", "order-42", "y"), want: client.ErrMismatch},
			"another method": {req: named(t, "PATCH", "order-42", "x"), want: client.ErrMismatch},
			"another path":   {req: other, want: client.ErrMismatch},
			"another host":   {req: host, want: client.ErrMismatch},
			"another Host":   {req: virtual, want: client.ErrMismatch},
			"another key":    {req: ownKey, want: client.ErrMismatch},
			"a bad key":      {req: badKey, want: client.ErrKeyInvalid},
			"no URL":         {req: noURL, want: client.ErrRequest},
			"ended context":  {req: request(t, "POST", "x").WithContext(over), want: context.Canceled},
			"no name":        {req: named(t, "POST", "", "x"), want: client.ErrOperation},
			"long name":      {req: named(t, "POST", strings.Repeat("n", 1025), "x"), want: client.ErrOperation},
			"not UTF-8":      {req: named(t, "POST", "\xff", "x"), want: client.ErrOperation},
			"no journal":     {req: named(t, "POST", "order-1", "x"), tr: client.New(s), want: client.ErrOperation},
			"body too long to compare": {
				req: long, want: client.ErrBody,
				tr: client.New(s, with(j), func(o *client.Options) { o.MaxRetries = -1 }, client.MaxBuffer(-1)),
			},
		} {
			if tt.tr == nil {
				tt.tr = tr
			}
			e := failure(t, tt.tr, tt.req)
			if !errors.Is(e, tt.want) || e.Attempts != 0 || !e.Unknown || e.Key != tt.req.Header.Get(keyHeader) {
				t.Errorf("%s: %+v, want %v", name, e, tt.want)
			}
		}
		if len(s.attempts()) != 1 {
			t.Errorf("%d attempts, want the first only", len(s.attempts()))
		}

		// Credentials and requests without a key don't matter.
		req := named(t, "POST", "order-42", "x")
		req.Header.Set("Authorization", "Bearer new")
		req.URL.User = url.UserPassword("new", "secret")
		req.URL.Fragment = "top"
		status(t, tr, req)
		status(t, tr, named(t, "GET", "order-42", ""))
		if seen := s.attempts(); seen[1].Key != seen[0].Key || seen[2].Key != "" {
			t.Errorf("keys %q, %q, %q", seen[0].Key, seen[1].Key, seen[2].Key)
		}

		// The shortest name and the longest, without a body, under the caller's own key.
		for _, name := range []string{"n", strings.Repeat("n", 1024)} {
			for _, own := range []string{"key of " + name[:1], ""} {
				req := named(t, "POST", name, "")
				req.Body, req.GetBody = nil, nil
				if own != "" {
					req.Header.Set(keyHeader, own)
				}
				status(t, tr, req)
				if seen := s.attempts(); seen[len(seen)-1].Key != "key of n" {
					t.Errorf("key %q, want the caller's", seen[len(seen)-1].Key)
				}
			}
		}

		// A body is read to compare it, and closed like that of an attempt.
		var opened []*trackedBody
		req = named(t, "POST", "order-43", "x")
		req.GetBody = func() (io.ReadCloser, error) {
			opened = append(opened, &trackedBody{ReadCloser: io.NopCloser(strings.NewReader("x"))})
			return opened[len(opened)-1], nil
		}
		if status(t, tr, req); len(opened) != 1 || !opened[0].isClosed() {
			t.Errorf("%d bodies were opened to compare it, want one, and closed", len(opened))
		}
	})
}

// What the server says of the key's lifetime is entered, of a torn answer too; what is known
// already isn't written again. After the lifetime nothing is sent: neither the old key nor a
// new one is safe. An answer without a record leaves the key no lifetime.
func TestLifetimeOfAnOperation(t *testing.T) {
	t.Parallel()
	const day, expires, status = 24 * time.Hour, "Idempotency-Expires", "Idempotency-Status"
	const seconds = 24 * 60 * 60
	for name, tt := range map[string]struct {
		first   step
		updates int
		life    time.Duration
	}{
		"nothing told":               {answer(503), 0, day},
		"the same, in whole seconds": {answer(503, expires, at(seconds-2)), 0, day},
		"a shorter one":              {answer(503, expires, at(seconds-3)), 1, day - 3*time.Second},
		"a longer one, torn":         {torn(503, expires, at(seconds+3)), 1, day + 3*time.Second},
		"unstored":                   {answer(201, status, "Unstored", expires, at(3600)), 1, 0},
		"unstored, to be retried":    {answer(500, status, "Unstored", expires, at(3600)), 1, 0},
		"unstored, torn":             {torn(201, status, "Unstored", expires, at(3600)), 1, 0},
		"ignored":                    {answer(201, status, "Ignored"), 1, 0},
		"ignored, to be retried":     {answer(500, status, "Ignored"), 1, 0},
		"ignored, torn":              {torn(201, status, "Ignored"), 1, 0},
		"ignored, asks for a retry":  {answer(500, status, "Ignored", "Stripe-Should-Retry", "true"), 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path := journalFile(t)
				file := open(t, path)
				j := &updates{Journal: file}
				s := &script{steps: []step{tt.first, answer(503)}}
				send := func(j client.Journal) error {
					_, _, err := roundTrip(t, client.New(s, with(j), never), named(t, "POST", "o", "x"))
					return err
				}
				_ = send(j)
				if e := file.Entries(); j.n != tt.updates || len(e) != 1 || e[0].Expires.Sub(e[0].Created) != tt.life {
					t.Fatalf("%d updates, %+v; want %d, and a lifetime of %v", j.n, e, tt.updates, tt.life)
				}
				crash(t, file)
				file = open(t, path)
				if tt.life > 0 {
					time.Sleep(tt.life - 3*time.Second) //nolint:forbidigo // virtual
					if err := send(file); errors.Is(err, client.ErrExpired) {
						t.Errorf("%v, before its lifetime is over", err)
					}
					time.Sleep(time.Second) //nolint:forbidigo // virtual
				}
				sent := len(s.attempts())
				err := send(file)
				if e, ok := errors.AsType[*client.Error](err); !ok || !errors.Is(err, client.ErrExpired) || !e.Unknown || e.Key != s.attempts()[0].Key || len(s.attempts()) != sent {
					t.Errorf("sent %d times, %v; want ErrExpired", len(s.attempts()), err)
				}
			})
		})
	}
}

// An operation that was answered is dropped with time, and its name is new again. One
// without an answer is never dropped for its age: it may have been carried out, and only
// its caller can find out. A clock that is days ahead takes no key with it.
func TestUnansweredOperationIsNeverDropped(t *testing.T) {
	t.Parallel()
	const keep = 8 * 24 * time.Hour
	for name, reopen := range map[string]bool{"still open": false, "opened anew": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				path := journalFile(t)
				j := open(t, path)
				keys := map[string]string{}
				send := func(name string, do step, expired, same bool) {
					t.Helper()
					s := &script{steps: []step{do}}
					_, _, err := roundTrip(t, client.New(s, with(j), never), named(t, "POST", name, "x"))
					var key string
					if e, ok := errors.AsType[*client.Error](err); ok {
						key = e.Key
					} else {
						key = s.attempts()[0].Key
					}
					if errors.Is(err, client.ErrExpired) != expired || (key == keys[name]) != same {
						t.Errorf("%s: %v with key %q, before %q", name, err, key, keys[name])
					}
					keys[name] = key
				}
				wait := func(d time.Duration) {
					time.Sleep(d) //nolint:forbidigo // virtual
					if reopen {
						crash(t, j)
						j = open(t, path)
					}
				}
				send("answered", answer(201), false, false)
				send("lost", failing(errReset), false, false)
				wait(keep - time.Second)
				send("answered", answer(201), true, true)
				wait(2 * time.Second)
				send("answered", answer(201), false, false)
				for range 2 {
					send("lost", answer(201), true, true)
					wait(keep)
				}
				if err := j.Done("lost"); err != nil {
					t.Fatal(err)
				}
				send("lost", answer(201), false, false) // its caller has found out
			})
		})
	}
}

// updates counts the updates of a journal.
type updates struct {
	client.Journal
	n int
}

func (u *updates) Update(ctx context.Context, e client.Entry) error {
	u.n++
	return u.Journal.Update(ctx, e)
}

// A DELETE that an earlier process may have carried out.
func TestResumedDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := journalFile(t)
		j := open(t, path)
		_ = failure(t, client.New(&script{steps: []step{failing(errReset)}}, with(j), keys("DELETE")), named(t, "DELETE", "cancel-42", ""))
		crash(t, j)
		j = open(t, path)
		if got := status(t, client.New(&script{steps: []step{answer(404)}}, with(j), keys("DELETE")), named(t, "DELETE", "cancel-42", "")); got != 204 {
			t.Errorf("status %d, want 204", got)
		}
	})
}

// Without a key from the journal nothing is sent: a retry would run again. Neither for an entry that says nothing, nor for
// one of the same request.
func TestJournalGivesNoKey(t *testing.T) {
	t.Parallel()
	for name, j := range map[string]keylessJournal{"nothing": {}, "the request without its key": {rest: true}} {
		s := &script{steps: []step{answer(201)}}
		if e := failure(t, client.New(s, with(j)), named(t, "POST", "o", "x")); !errors.Is(e, client.ErrMismatch) || len(s.attempts()) != 0 {
			t.Errorf("%s: %v after %d attempts, want nothing sent", name, e, len(s.attempts()))
		}
	}
}

// keylessJournal has lost the keys, and without rest all else.
type keylessJournal struct{ rest bool }

func (j keylessJournal) Begin(_ context.Context, e client.Entry) (client.Entry, bool, error) {
	if !j.rest {
		e = client.Entry{}
	}
	e.Key = ""
	return e, j.rest, nil
}
func (keylessJournal) Update(context.Context, client.Entry) error { return nil }

type brokenJournal struct{ begin, update error }

func (b brokenJournal) Begin(_ context.Context, e client.Entry) (client.Entry, bool, error) {
	return e, false, b.begin
}

func (b brokenJournal) Update(ctx context.Context, _ client.Entry) error {
	return errors.Join(b.update, ctx.Err())
}

// The request isn't sent without its entry. An answer that can't be entered is returned all
// the same, and entered although its caller has cancelled.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	s := &script{steps: []step{answer(201)}}
	if e := failure(t, client.New(s, with(brokenJournal{begin: full})), named(t, "POST", "o", "x")); !errors.Is(e, full) || len(s.attempts()) != 0 || e.Key != "" || !e.Unknown {
		t.Errorf("%+v after %d attempts, want unknown and nothing sent", e, len(s.attempts()))
	}
	for name, tt := range map[string]struct {
		answer  step
		cancels bool // its context, meanwhile
		status  int
		err     error
	}{
		"an answer":        {answer(201), false, 201, full},
		"a torn answer":    {torn(201, "Idempotency-Expires", "Fri, 31 Dec 9999 23:59:59 GMT"), false, 0, full},
		"after its cancel": {answer(201), true, 201, nil},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answers := func(req *http.Request) (*http.Response, error) {
			if tt.cancels {
				cancel()
			}
			return tt.answer(req)
		}
		var told []string
		tr := client.New(&script{steps: []step{answers}}, never, with(brokenJournal{update: tt.err}), func(o *client.Options) {
			o.Hooks.JournalFailed = func(_ context.Context, ev client.Event) { told = append(told, fmt.Sprint(ev.Status, ev.Err)) }
		})
		resp, _, err := roundTrip(t, tr, named(t, "POST", "o", "x").WithContext(client.WithOperation(ctx, "o")))
		want := []string{fmt.Sprint(tt.status, full)}
		if tt.err == nil {
			want = nil
		}
		if diff := cmp.Diff(want, told); diff != "" || (err == nil) != (tt.status != 0) || err == nil && resp.StatusCode != tt.status {
			t.Errorf("%s: %v, %v; told (-want +got):\n%s", name, resp, err, diff)
		}
	}
}

// Many goroutines with one name at once are one operation.
func TestOneOperationAtOnce(t *testing.T) {
	t.Parallel()
	j := open(t, journalFile(t))
	s := &script{steps: []step{answer(201)}}
	tr := client.New(s, with(j))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() { status(t, tr, named(t, "POST", "order-42", "x")) })
	}
	wg.Wait()
	for _, a := range s.attempts() {
		if a.Key != s.attempts()[0].Key {
			t.Fatalf("keys %q and %q", a.Key, s.attempts()[0].Key)
		}
	}
	if len(s.attempts()) != 50 || len(j.Entries()) != 1 {
		t.Errorf("%d attempts, %d entries", len(s.attempts()), len(j.Entries()))
	}
}
