package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem/client"
)

// inMemory serves handler without a network and records requests.
type inMemory struct {
	handler http.Handler

	mu   sync.Mutex
	seen []attempt
}

func (m *inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	body := []byte{}
	if req.Body != nil {
		var err error
		body, err = io.ReadAll(req.Body)
		if err := errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	m.seen = append(m.seen, attempt{Method: req.Method, URL: req.URL.String(), Key: req.Header.Get(keyHeader), Body: string(body), Header: req.Header.Clone()})
	m.mu.Unlock()
	in := httptest.NewRequestWithContext(req.Context(), req.Method, req.URL.String(), strings.NewReader(string(body)))
	in.Header = req.Header.Clone()
	w := httptest.NewRecorder()
	m.handler.ServeHTTP(w, in)
	resp := w.Result()
	resp.Request = req
	return resp, req.Context().Err()
}

func post(t *testing.T, hc *http.Client, url string, set ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(set); i += 2 {
		req.Header.Set(set[i], set[i+1])
	}
	resp, err := hc.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestUnderHTTPClient(t *testing.T) {
	t.Parallel()
	t.Run("cookies", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			n := 0
			m := &inMemory{handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n++; n%2 == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				http.SetCookie(w, &http.Cookie{Name: "session", Value: fmt.Sprint(n)})
			})}
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			hc := &http.Client{Transport: client.New(m), Jar: jar}
			post(t, hc, "https://api.test/")
			post(t, hc, "https://api.test/")
			for i, want := range []string{"", "", "session=2", "session=2"} {
				if got := m.seen[i].Header.Get("Cookie"); got != want {
					t.Errorf("request %d: cookie %q, want %q", i+1, got, want)
				}
			}
		})
	})

	t.Run("its timeout ends everything", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: []step{answer(503), hanging}}
			hc := &http.Client{Transport: client.New(s), Timeout: 5 * time.Second}
			start := time.Now()
			_, err := hc.Post("https://api.test/", "", strings.NewReader("x"))
			timeout, ok := errors.AsType[*url.Error](err)
			if !ok || !timeout.Timeout() || len(s.attempts()) != 2 || time.Since(start) != 5*time.Second {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		})
	})
}
