package idemtest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/idemtest"
)

// postCharge charges by HTTP; 0 is no answer.
func postCharge(t *testing.T, c *http.Client, url, key, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/charges", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, ""
	}
	return resp.StatusCode, string(b)
}

// The same story without a network, and over HTTP.
func TestProvider(t *testing.T) {
	t.Parallel()
	for _, wired := range []bool{false, true} {
		p := &idemtest.Provider{Answer: func(e idemtest.Effect) any { return map[string]string{"charge": "ch_" + e.ID} }}
		client, url := &http.Client{Transport: p}, "https://provider.example"
		if wired {
			srv := httptest.NewServer(p)
			t.Cleanup(srv.Close)
			client, url = srv.Client(), srv.URL
		}
		p.Next(
			idemtest.Fate{}, idemtest.Fate{},
			idemtest.Fate{Refuse: 402}, idemtest.Fate{Refuse: 503},
			idemtest.Fate{LoseRequest: true}, idemtest.Fate{LoseAnswer: true},
		)
		for i, tt := range []struct {
			key, body string
			status    int
			answer    string
		}{
			{"a", "20", 200, `{"charge":"ch_1"}`},
			{"a", "30", 400, "idempotency_error"},
			{"b", "20", 402, "card_error"},
			{"b", "20", 503, "api_error"},
			{"b", "20", 0, ""},
			{"b", "20", 0, ""},
			{"b", "20", 200, `{"charge":"ch_2"}`},
			{"", "20", 200, `{"charge":"ch_3"}`},
			{"", "20", 200, `{"charge":"ch_4"}`},
			{"a", "20", 200, `{"charge":"ch_1"}`},
		} {
			if status, answer := postCharge(t, client, url, tt.key, tt.body); status != tt.status || !strings.Contains(answer, tt.answer) {
				t.Errorf("wired %t, call %d: %d %s, want %d %s", wired, i+1, status, answer, tt.status, tt.answer)
			}
		}
		var got []string
		for _, e := range p.Effects("/charges") {
			got = append(got, e.String()+" "+e.Key+" "+string(e.Body)+" "+strings.Repeat("x", e.Calls))
		}
		want := []string{"POST /charges a 20 xxx", "POST /charges b 20 xx", "POST /charges  20 x", "POST /charges  20 x"}
		if diff := cmp.Diff(want, got); diff != "" || p.Calls() != 9 || p.Effects("/mails") != nil {
			t.Errorf("wired %t, %d calls, effects (-want +got):\n%s", wired, p.Calls(), diff)
		}
		resp, err := client.Get(url + "/charges")
		if err != nil || resp.StatusCode != 200 || p.Calls() != 9 {
			t.Errorf("wired %t: reading has an effect: %v, %d calls", wired, err, p.Calls())
		}
		_ = resp.Body.Close()
	}
}

func TestProviderForgets(t *testing.T) {
	t.Parallel()
	clock := idemtest.NewClock()
	for _, tt := range []struct {
		name   string
		memory time.Duration
		after  time.Duration
		forget bool
		want   int
	}{
		{"for ever", 0, 1000 * time.Hour, false, 1},
		{"in its time", time.Hour, time.Hour - 1, false, 1},
		{"after its time", time.Hour, time.Hour, false, 2},
		{"no keys at all", -1, 0, false, 2},
		{"told to", 0, 0, true, 2},
	} {
		p := &idemtest.Provider{Memory: tt.memory, Now: clock.Now}
		for range 2 {
			if _, err := p.Call(t.Context(), "charge", "k", 20); err != nil {
				t.Fatal(err)
			}
			clock.Advance(tt.after)
			if tt.forget {
				p.Forget()
			}
		}
		if n := len(p.Effects()); n != tt.want {
			t.Errorf("%s: %d effects, want %d", tt.name, n, tt.want)
		}
	}
}

func TestProviderCall(t *testing.T) {
	t.Parallel()
	var p idemtest.Provider
	p.Next(idemtest.Fate{Refuse: 422}, idemtest.Fate{LoseAnswer: true})
	var refused *idemtest.Refusal
	if _, err := p.Call(t.Context(), "charge", "k", 20); !errors.As(err, &refused) || refused.Status != 422 || refused.Type != "invalid_request_error" {
		t.Errorf("got %v", err)
	}
	if _, err := p.Call(t.Context(), "charge", "k", 20); !errors.Is(err, idemtest.ErrNoAnswer) {
		t.Errorf("got %v", err)
	}
	if e, err := p.Call(t.Context(), "charge", "k", 20); err != nil || e.ID != "1" || e.Calls != 2 || e.String() != "charge" {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := p.Call(t.Context(), "refund", "k", 20); !errors.As(err, &refused) || refused.Type != "idempotency_error" {
		t.Errorf("another call with the same key: %v", err)
	}
	if _, err := p.Call(t.Context(), "charge", "k", make(chan int)); err == nil {
		t.Error("arguments without a JSON form were taken")
	}
}

// Late calls are carried out in the order in which they arrive, even if they all arrive
// in one step of the clock.
func TestProviderLateCalls(t *testing.T) {
	t.Parallel()
	for key, want := range map[string][]string{"": {"five", "six", "also six", "ten"}, "k": {"five"}} {
		clock := idemtest.NewClock()
		p := &idemtest.Provider{Now: clock.Now}
		for _, tt := range []struct {
			name string
			late time.Duration
		}{{"ten", 10}, {"six", 6}, {"five", 5}, {"also six", 6}} {
			p.Next(idemtest.Fate{Late: tt.late * time.Second})
			if _, err := p.Call(t.Context(), tt.name, key, nil); !errors.Is(err, idemtest.ErrNoAnswer) {
				t.Errorf("a late call: got %v, want no answer", err)
			}
		}
		clock.Advance(20 * time.Second)
		var got []string
		for _, e := range p.Effects() {
			got = append(got, e.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("effects with the key %q (-want +got):\n%s", key, diff)
		}
	}
}

// The effect comes before the delay: a caller that gives up has been charged.
func TestProviderDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p idemtest.Provider
		p.Next(idemtest.Fate{Delay: time.Minute}, idemtest.Fate{Delay: time.Minute})
		begin := time.Now()
		if _, err := p.Call(t.Context(), "charge", "k", 20); err != nil || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Call(ctx, "charge", "l", 20); !errors.Is(err, idemtest.ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) || len(p.Effects()) != 2 {
			t.Errorf("a caller that gives up: %v, %d effects", err, len(p.Effects()))
		}
	})
}
