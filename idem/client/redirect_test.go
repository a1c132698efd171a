package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/samekey/samekey/idem/client"
)

// moving is a server on which the resource at /old is now at /new.
func moving(status int) *inMemory {
	return &inMemory{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "https://elsewhere.test/new", status)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})}
}

// The same request elsewhere is the same operation; a GET needs no generated key.
func TestRedirectedKey(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		301: "POST GET", 302: "POST GET", 303: "POST GET", 307: "POST POST", 308: "POST POST",
	} {
		for _, own := range []string{"", "mine"} {
			t.Run(fmt.Sprint(status, own), func(t *testing.T) {
				t.Parallel()
				m := moving(status)
				hc := &http.Client{Transport: client.New(m)}
				set := []string{}
				if own != "" {
					set = []string{keyHeader, own}
				}
				post(t, hc, "https://api.test/old", set...)
				post(t, hc, "https://api.test/old", set...)
				if len(m.seen) != 4 {
					t.Fatalf("%d requests", len(m.seen))
				}
				for i := 0; i < 4; i += 2 {
					first, second := m.seen[i], m.seen[i+1]
					if got := first.Method + " " + second.Method; got != want {
						t.Errorf("%s, want %s", got, want)
					}
					wantKey := own
					if second.Method == "POST" {
						wantKey = first.Key
					}
					if second.Key != wantKey {
						t.Errorf("redirected with key %q, want %q", second.Key, wantKey)
					}
				}
				if own == "" && m.seen[0].Key == m.seen[2].Key {
					t.Error("the key of the first operation was used for the second")
				}
			})
		}
	}
}

// The same if the entry's request isn't the request that arrives, and if a GET
// with the caller's key follows.
func TestRedirectedOperationIsOneEntry(t *testing.T) {
	t.Parallel()
	for _, status := range []int{303, 307} {
		for _, own := range []string{"", "mine"} {
			m := moving(status)
			j := open(t, journalFile(t))
			hc := &http.Client{Transport: client.New(m, with(j))}
			for range 2 { // the second time resumed
				req, err := http.NewRequestWithContext(client.WithOperation(t.Context(), "o"), "POST", "https://api.test/old", strings.NewReader("x"))
				if err != nil {
					t.Fatal(err)
				}
				if own != "" {
					req.Header.Set(keyHeader, own)
				}
				resp, err := hc.Do(req)
				if err != nil {
					t.Fatalf("%d, key %q: %v", status, own, err)
				}
				_ = resp.Body.Close()
			}
			for _, a := range m.seen {
				if a.Method == "POST" && a.Key != m.seen[0].Key {
					t.Errorf("%d: keys %q and %q", status, m.seen[0].Key, a.Key)
				}
			}
			want := map[int]int{303: 303, 307: 201}[status]
			if e := j.Entries(); len(m.seen) != 4 || len(e) != 1 || e[0].Status != want {
				t.Errorf("%d: %d requests, entries %+v", status, len(m.seen), e)
			}
		}
	}
}

// A redirect does not count as an attempt: there was nothing to delete.
func TestRedirectedDeleteFindsNothing(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{answer(307, "Location", "/new"), answer(404)}}
	req := named(t, "DELETE", "o", "")
	req.Body = http.NoBody
	resp, err := (&http.Client{Transport: client.New(s, with(open(t, journalFile(t))), idemStripe)}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 404 || len(s.attempts()) != 2 {
		t.Errorf("status %d after %d requests, want the 404", resp.StatusCode, len(s.attempts()))
	}
}

// The outcome of the redirected request is unknown here.
func TestRedirectedRequestIsUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{failing(errReset), answer(307, "Location", "/new"), failing(errRefused)}}
		req := request(t, "POST", "x")
		req.Body = io.NopCloser(strings.NewReader("x"))
		_, err := (&http.Client{Transport: client.New(s)}).Do(req)
		e, ok := errors.AsType[*client.Error](err)
		if !ok || !e.Unknown || e.Key != s.attempts()[0].Key || len(s.attempts()) != 5 {
			t.Errorf("%+v after %d attempts, want unknown, with the key", e, len(s.attempts()))
		}
	})
}
