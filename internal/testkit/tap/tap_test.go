package tap_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/samekey/samekey/internal/testkit/tap"
)

// place is a tap in front of a service that counts what arrives.
type place struct {
	tap.Tap
	url     string
	arrived atomic.Int64
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.arrived.Add(1)
		w.Header().Set("X-Amz-Crc32", "1")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(service.Close)
	target, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p.Handler(target, tap.Path))
	t.Cleanup(front.Close)
	p.url = front.URL
	return p
}

// call returns what came back, or "cut".
func (p *place) call(t *testing.T, path string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(p.url+path, "text/plain", strings.NewReader("hello"))
	if err != nil {
		return "cut"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Amz-Crc32") != "1" {
		t.Errorf("got %s %v %v", resp.Status, resp.Header, err)
	}
	return string(body)
}

func TestCallsArePassedOnAndCounted(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, path := range []string{"/a", "/b"} {
		if got := p.call(t, path); got != "hello" {
			t.Errorf("got %q", got)
		}
	}
	if got, want := p.Calls(), []tap.Call{{Name: "/a", Body: "hello"}, {Name: "/b", Body: "hello"}}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
	p.Reset()
	if got := p.Calls(); len(got) != 0 {
		t.Errorf("calls %v after a reset", got)
	}
}

func TestHeldCalls(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name          string
		side          tap.Side
		end           func(*tap.Held)
		held, arrived int64 // what has arrived while it is held, and in the end
		answer        string
	}{
		{"before, and goes on", tap.Before, (*tap.Held).GoOn, 1, 2, "hello"},
		{"before, and is dropped", tap.Before, (*tap.Held).Drop, 1, 1, "cut"},
		{"after, and goes on", tap.After, (*tap.Held).GoOn, 2, 2, "hello"},
		{"after, and is dropped", tap.After, (*tap.Held).Drop, 2, 2, "cut"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			h := p.Hold(2, func(c tap.Call) bool { return c.Name == "/a" }, tc.side)
			p.call(t, "/a")
			answer := make(chan string, 1)
			go func() { answer <- p.call(t, "/a") }()
			<-h.Reached()
			if got := p.arrived.Load(); got != tc.held {
				t.Errorf("%d calls have arrived, want %d", got, tc.held)
			}
			tc.end(h)
			if got := <-answer; got != tc.answer {
				t.Errorf("got %q, want %q", got, tc.answer)
			}
			if got := p.arrived.Load(); got != tc.arrived {
				t.Errorf("%d calls have arrived in the end, want %d", got, tc.arrived)
			}
			if got := p.call(t, "/a"); got != "hello" {
				t.Errorf("the next call got %q", got)
			}
		})
	}
}

func TestDown(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.Down(true)
	if got := p.call(t, "/a"); got != "cut" || p.arrived.Load() != 0 || len(p.Calls()) != 0 {
		t.Errorf("got %q, %d arrived, calls %v", got, p.arrived.Load(), p.Calls())
	}
	p.Down(false)
	if got := p.call(t, "/a"); got != "hello" {
		t.Errorf("got %q", got)
	}
}
