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

	"github.com/samekey/samekey/idem/client"
)

func open(t *testing.T, path string, optFns ...func(*client.JournalOptions)) *client.FileJournal {
	t.Helper()
	j, err := client.OpenJournal(path, optFns...)
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
			"no name":        {req: named(t, "POST", "", "x"), want: client.ErrOperation},
			"long name":      {req: named(t, "POST", strings.Repeat("n", 1025), "x"), want: client.ErrOperation},
			"not UTF-8":      {req: named(t, "POST", "\xff", "x"), want: client.ErrOperation},
			"no journal":     {req: named(t, "POST", "order-1", "x"), tr: client.New(s), want: client.ErrOperation},
			"body too long to compare": {
				req: long, want: client.ErrBody,
				tr: client.New(s, with(j), func(o *client.Options) { o.MaxRetries, o.MaxBuffer = -1, -1 }),
			},
		} {
			if tt.tr == nil {
				tt.tr = tr
			}
			e := failure(t, tt.tr, tt.req)
			if !errors.Is(e, tt.want) || e.Attempts != 0 || e.Unknown != (e.Key != "") || e.Key != tt.req.Header.Get(keyHeader) {
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
	})
}

// The shortest name, the longest one, and a request without a body.
func TestNamesAndBodiesAtTheirLimits(t *testing.T) {
	t.Parallel()
	j := open(t, journalFile(t))
	s := &script{steps: []step{answer(200)}}
	for _, name := range []string{"n", strings.Repeat("n", 1024)} {
		for range 2 {
			req := named(t, "POST", name, "")
			req.Body, req.GetBody = nil, nil
			status(t, client.New(s, with(j)), req)
		}
	}
	if seen := s.attempts(); len(seen) != 4 || seen[0].Key != seen[1].Key || seen[2].Key != seen[3].Key {
		t.Errorf("attempts %+v, want two operations", seen)
	}
}

// A body is read to compare it with the operation's, and closed like that of an attempt.
func TestComparedBodyIsClosed(t *testing.T) {
	t.Parallel()
	var opened []*trackedBody
	req := named(t, "POST", "order-42", "x")
	req.GetBody = func() (io.ReadCloser, error) {
		opened = append(opened, &trackedBody{ReadCloser: io.NopCloser(strings.NewReader("x"))})
		return opened[len(opened)-1], nil
	}
	status(t, client.New(&script{steps: []step{answer(200)}}, with(open(t, journalFile(t)))), req)
	for i, b := range opened {
		if !b.isClosed() {
			t.Errorf("body %d of %d is open", i+1, len(opened))
		}
	}
	if len(opened) == 0 {
		t.Error("the body wasn't compared")
	}
}

// A redirect leads to the operation that it is of, and to no other.
func TestRedirectToAnotherOperationIsRefused(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{answer(200)}}
	tr := client.New(s, with(open(t, journalFile(t))))
	status(t, tr, named(t, "POST", "order-42", "x"))
	resp, _, err := roundTrip(t, tr, named(t, "POST", "order-43", "y"))
	if err != nil {
		t.Fatal(err)
	}
	req := named(t, "POST", "order-42", "y")
	req.Response = resp
	if e := failure(t, tr, req); !errors.Is(e, client.ErrMismatch) || len(s.attempts()) != 2 {
		t.Errorf("%v after %d attempts, want it refused", e, len(s.attempts()))
	}
}

// The journal remembers the caller's key like a generated key.
func TestOperationWithOwnKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := open(t, journalFile(t))
		s := &script{steps: []step{answer(200)}}
		for range 2 {
			req := named(t, "POST", "order-42", "x")
			req.Header.Set(keyHeader, "mine")
			status(t, client.New(s, with(j)), req)
		}
		status(t, client.New(s, with(j)), named(t, "POST", "order-42", "x"))
		for _, a := range s.attempts() {
			if a.Key != "mine" {
				t.Errorf("key %q", a.Key)
			}
		}
	})
}

// After the key's lifetime nothing is sent: neither the old key nor a new one is safe.
func TestOperationExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := journalFile(t)
		j := open(t, path)
		s := &script{steps: []step{answer(503, "Idempotency-Expires", timeAfter(7200)), answer(503)}}
		tr := func() *client.Transport {
			return client.New(s, with(j), func(o *client.Options) { o.MaxRetries = -1 })
		}
		status(t, tr(), named(t, "POST", "advertised", "x")) // two hours
		status(t, tr(), named(t, "POST", "default", "x"))    // a day

		wait := func(d time.Duration) {
			time.Sleep(d) //nolint:forbidigo // virtual
			crash(t, j)
			j = open(t, path)
		}
		wait(time.Hour)
		status(t, tr(), named(t, "POST", "advertised", "x"))
		wait(time.Hour)
		if e := failure(t, tr(), named(t, "POST", "advertised", "x")); !errors.Is(e, client.ErrExpired) || e.Attempts != 0 || !e.Unknown || e.Key != s.attempts()[0].Key {
			t.Errorf("%v", e)
		}
		status(t, tr(), named(t, "POST", "default", "x"))
		wait(23 * time.Hour)
		if e := failure(t, tr(), named(t, "POST", "default", "x")); !errors.Is(e, client.ErrExpired) {
			t.Errorf("%v", e)
		}
	})
}

// An operation that was answered is dropped with time, and its name is new again.
func TestAnsweredOperationIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := journalFile(t)
		j := open(t, path)
		s := &script{steps: []step{answer(201)}}
		status(t, client.New(s, with(j)), named(t, "POST", "order-42", "x"))
		time.Sleep(24*time.Hour + 7*24*time.Hour - time.Second) //nolint:forbidigo // virtual
		crash(t, j)
		j = open(t, path)
		if e := failure(t, client.New(s, with(j)), named(t, "POST", "order-42", "x")); !errors.Is(e, client.ErrExpired) {
			t.Errorf("%v, want it refused for seven days", e)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // virtual
		crash(t, j)
		j = open(t, path)
		if got := j.Entries(); len(got) != 0 {
			t.Errorf("%d entries are still kept: %+v", len(got), got)
		}
		status(t, client.New(s, with(j)), named(t, "POST", "order-42", "y"))
		time.Sleep(24*time.Hour + 7*24*time.Hour + time.Second)              //nolint:forbidigo // virtual
		status(t, client.New(s, with(j)), named(t, "POST", "order-42", "z")) // without opening the journal again
		if keys := s.attempts(); len(keys) != 3 || keys[0].Key == keys[1].Key || keys[1].Key == keys[2].Key {
			t.Errorf("%d attempts, want three, each with a key of its own: %+v", len(keys), keys)
		}
	})
}

// An operation without an answer is never dropped for its age: it may have been
// carried out, and only its caller can find out. A clock that is eight days ahead
// while the journal is opened takes no key with it.
func TestUnansweredOperationIsNeverDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := journalFile(t)
		j := open(t, path)
		s := &script{steps: []step{failing(errReset)}}
		tr := func() *client.Transport {
			return client.New(s, with(j), func(o *client.Options) { o.MaxRetries = -1 })
		}
		first := failure(t, tr(), named(t, "POST", "order-42", "x"))
		for range 2 { // opened anew, and still open
			time.Sleep(24*time.Hour + 7*24*time.Hour + time.Second) //nolint:forbidigo // virtual
			if e := failure(t, tr(), named(t, "POST", "order-42", "x")); !errors.Is(e, client.ErrExpired) || e.Key != first.Key || !e.Unknown {
				t.Errorf("%v, want ErrExpired of the first key", e)
			}
			crash(t, j)
			j = open(t, path)
			if got := j.Entries(); len(got) != 1 || got[0].Key != first.Key {
				t.Errorf("entries %+v, want that of the first request", got)
			}
		}
		if got := len(s.attempts()); got != 1 {
			t.Errorf("sent %d times, want once", got)
		}
		if err := j.Done("order-42"); err != nil {
			t.Fatal(err)
		}
		if e := failure(t, tr(), named(t, "POST", "order-42", "x")); errors.Is(e, client.ErrExpired) || e.Key == first.Key {
			t.Errorf("%v, want another try with a new key: its caller has found out", e)
		}
	})
}

// Unsettled operations keep their keys, even after an answer.
func TestWhichAnswersAreNoted(t *testing.T) {
	t.Parallel()
	settled := map[int]bool{
		200: true, 201: true, 202: true, 303: true, 400: true, 402: true, 404: true, 410: true, 422: true,
		307: false, 308: false, 401: false, 403: false, 407: false, 408: false, 409: false, 425: false, 429: false, 500: false, 503: false,
	}
	synctest.Test(t, func(t *testing.T) {
		j := open(t, journalFile(t))
		for code, want := range settled {
			time.Sleep(time.Second) //nolint:forbidigo // virtual
			name := fmt.Sprint(code)
			status(t, client.New(&script{steps: []step{answer(code)}}, with(j)), named(t, "POST", name, "x"))
			for _, e := range j.Entries() {
				if e.Operation == name && (e.Status == code) != want {
					t.Errorf("%d: noted as answered: %t, want %t", code, e.Status == code, want)
				}
			}
		}
		// The true answer of an earlier attempt, whatever it is.
		status(t, client.New(&script{steps: []step{answer(503, "Idempotent-Replayed", "true")}}, with(j)), named(t, "POST", "replayed", "x"))
		if e := j.Entries(); e[len(e)-1].Operation != "replayed" || e[len(e)-1].Status != 503 {
			t.Errorf("entries %+v", e)
		}
		// Package idem's "still running".
		time.Sleep(time.Second) //nolint:forbidigo // virtual
		status(t, client.New(&script{steps: []step{answer(202, "Retry-After", "1")}}, with(j)), named(t, "POST", "running", "x"))
		if e := j.Entries(); len(e) != len(settled)+2 || e[len(e)-1].Operation != "running" || e[len(e)-1].Status != 0 {
			t.Errorf("entries %+v", e)
		}
	})
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

// An answer is written to the disk if it ends the operation, or tells another lifetime of
// its key than is known. That is no answer of the operation.
func TestOnlyNewsIsWritten(t *testing.T) {
	t.Parallel()
	const day = 24 * 60 * 60
	for name, tt := range map[string]struct {
		first func(status int, headers ...string) step
		life  int // told, in seconds; 0: nothing
		want  int // known then
	}{
		"no news":                             {answer, 0, day},
		"the same, in whole seconds":          {answer, day - 2, day},
		"a shorter lifetime":                  {answer, day - 3, day - 3},
		"a longer lifetime, of a torn answer": {torn, day + 3, day + 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				file := open(t, journalFile(t))
				j := &updates{Journal: file}
				begun := time.Now()
				told := ""
				if tt.life != 0 {
					told = timeAfter(tt.life)
				}
				resp, err := client.New(&script{steps: []step{tt.first(503, "Idempotency-Expires", told)}}, with(j), func(o *client.Options) { o.MaxRetries = -1 }).RoundTrip(named(t, "POST", "o", "x"))
				if err == nil {
					_ = resp.Body.Close()
				}
				e := file.Entries()
				if news := tt.want != day; (j.n == 1) != news || len(e) != 1 || !e[0].Answered.IsZero() || e[0].Status != 0 || e[0].Expires.Sub(begun) != time.Duration(tt.want)*time.Second {
					t.Errorf("%d updates, %+v; want an open operation, a lifetime of %d s", j.n, e, tt.want)
				}
			})
		})
	}
}

// A DELETE that an earlier process may have carried out.
func TestResumedDelete(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := journalFile(t)
		j := open(t, path)
		_ = failure(t, client.New(&script{steps: []step{failing(errReset)}}, with(j), idemStripe), named(t, "DELETE", "cancel-42", ""))
		crash(t, j)
		j = open(t, path)
		if got := status(t, client.New(&script{steps: []step{answer(404)}}, with(j), idemStripe), named(t, "DELETE", "cancel-42", "")); got != 204 {
			t.Errorf("status %d, want 204", got)
		}
	})
}

// The answer is recorded although its caller has cancelled.
func TestAnswerIsNotedAfterCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := &counts{}
	s := &script{steps: []step{func(req *http.Request) (*http.Response, error) {
		cancel()
		return answer(201)(req)
	}}}
	tr := client.New(s, with(strictJournal{}), func(o *client.Options) { o.Hooks = c.hooks() })
	if got := status(t, tr, request(t, "POST", "x").WithContext(client.WithOperation(ctx, "o"))); got != 201 || c.of("journal failed") != 0 {
		t.Errorf("status %d, %v", got, c.n)
	}
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

// strictJournal fails if its context has ended.
type strictJournal struct{}

func (strictJournal) Begin(ctx context.Context, e client.Entry) (client.Entry, bool, error) {
	return e, false, ctx.Err()
}
func (strictJournal) Update(ctx context.Context, _ client.Entry) error { return ctx.Err() }

type brokenJournal struct{ begin, update error }

func (b brokenJournal) Begin(_ context.Context, e client.Entry) (client.Entry, bool, error) {
	return e, false, b.begin
}
func (b brokenJournal) Update(context.Context, client.Entry) error { return b.update }

func TestJournalFails(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	s := &script{steps: []step{answer(201)}}
	if e := failure(t, client.New(s, with(brokenJournal{begin: full})), named(t, "POST", "o", "x")); !errors.Is(e, full) || len(s.attempts()) != 0 {
		t.Errorf("%v after %d attempts, want nothing sent", e, len(s.attempts()))
	}
	c := &counts{}
	tr := client.New(s, with(brokenJournal{update: full}), func(o *client.Options) { o.Hooks = c.hooks() })
	if got := status(t, tr, named(t, "POST", "o", "x")); got != 201 || c.of("journal failed") != 1 {
		t.Errorf("status %d, %v; want the answer all the same", got, c.n)
	}
	tr = client.New(&script{steps: []step{torn(201, "Idempotency-Expires", timeAfter(60))}}, with(brokenJournal{update: full}), func(o *client.Options) {
		o.Hooks.JournalFailed = func(_ context.Context, ev client.Event) {
			if ev.Status != 0 || !errors.Is(ev.Err, full) {
				t.Errorf("told of %+v, want no status: there was no answer", ev)
			}
		}
		o.MaxRetries = -1
	})
	_ = failure(t, tr, named(t, "POST", "o", "x"))
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
