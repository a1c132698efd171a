package world_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/examples/rides/world"
)

// The lists, as clients see them.
type (
	charge struct {
		ID, Key, Customer string
		Amount, Calls     int
	}
	mail struct {
		JobID  string `json:"job_id"`
		RideID string `json:"ride_id"`
		Calls  int
	}
)

const (
	twenty = `{"customer":"cus_jane","amount":2000,"currency":"usd","description":"Ride 1"}`
	thirty = `{"customer":"cus_jane","amount":3000,"currency":"usd","description":"Ride 1"}`
)

type outside struct{ url string }

func start(t *testing.T) outside {
	t.Helper()
	srv := httptest.NewServer(new(world.World).Handler())
	t.Cleanup(srv.Close)
	return outside{srv.URL}
}

// do sends a request. Status 0: the connection was cut.
func (o outside) do(t *testing.T, method, path, key, body string) (status int, answer []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, o.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil
	}
	return resp.StatusCode, answer
}

func (o outside) charge(t *testing.T, key, body string) int {
	t.Helper()
	status, _ := o.do(t, "POST", "/v1/charges", key, body)
	return status
}

func (o outside) mode(t *testing.T, mode string) {
	t.Helper()
	if status, answer := o.do(t, "PUT", "/v1/mode", "", mode); status != 200 {
		t.Fatalf("PUT /v1/mode %s: %d %s", mode, status, answer)
	}
}

// list decodes a list strictly: other members are a change of the contract.
func list[T any](t *testing.T, o outside, path string) []T {
	t.Helper()
	_, body := o.do(t, "GET", path, "", "")
	var all []T
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&all); err != nil {
		t.Fatalf("GET %s: %v in %s", path, err, body)
	}
	return all
}

// charges are the charges without their ids.
func (o outside) charges(t *testing.T) []charge {
	t.Helper()
	all := list[charge](t, o, "/v1/charges")
	for i := range all {
		if !strings.HasPrefix(all[i].ID, "ch_") {
			t.Errorf("charge %d has the id %q", i, all[i].ID)
		}
		all[i].ID = ""
	}
	return all
}

func (o outside) want(t *testing.T, want ...charge) {
	t.Helper()
	if want == nil {
		want = []charge{}
	}
	if diff := cmp.Diff(want, o.charges(t)); diff != "" {
		t.Errorf("charges (-want +got):\n%s", diff)
	}
}

func TestChargeHonoursItsKey(t *testing.T) {
	t.Parallel()
	o := start(t)
	o.want(t) // an empty list, not null
	_, first := o.do(t, "POST", "/v1/charges", "a", twenty)
	status, again := o.do(t, "POST", "/v1/charges", "a", twenty)
	if status != 200 || !bytes.Equal(first, again) {
		t.Errorf("the same key: %d %s, first %s", status, again, first)
	}
	o.want(t, charge{Key: "a", Customer: "cus_jane", Amount: 2000, Calls: 2})

	if status, answer := o.do(t, "POST", "/v1/charges", "a", thirty); status != 400 || !strings.Contains(string(answer), "idempotency_error") {
		t.Errorf("the same key for another charge: %d %s", status, answer)
	}
	for range 2 {
		o.charge(t, "", twenty)
	}
	o.want(t,
		charge{Key: "a", Customer: "cus_jane", Amount: 2000, Calls: 3},
		charge{Customer: "cus_jane", Amount: 2000, Calls: 1}, // each without a key is a charge of its own
		charge{Customer: "cus_jane", Amount: 2000, Calls: 1},
	)
}

func TestMailIsSentOncePerJob(t *testing.T) {
	t.Parallel()
	o := start(t)
	o.mode(t, `{"mail":"error","times":1}`)
	var got []int
	for _, job := range []string{"1", "1", "1", "2"} {
		status, _ := o.do(t, "POST", "/v1/mails", "", `{"job_id":"`+job+`","ride_id":"r","to":"jane@example.com"}`)
		got = append(got, status)
	}
	if diff := cmp.Diff([]int{503, 200, 200, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	want := []mail{{JobID: "1", RideID: "r", Calls: 2}, {JobID: "2", RideID: "r", Calls: 1}}
	if diff := cmp.Diff(want, list[mail](t, o, "/v1/mails")); diff != "" {
		t.Errorf("mails (-want +got):\n%s", diff)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	once := charge{Key: "a", Customer: "cus_jane", Amount: 2000, Calls: 1}
	twice := once
	twice.Calls = 2
	for _, tc := range []struct {
		mode             string
		first            int // status
		charged, retried []charge
	}{
		{`{}`, 200, []charge{once}, []charge{twice}},
		{`{"charge":"decline","times":1}`, 402, nil, []charge{once}},
		{`{"charge":"error","times":1}`, 503, nil, []charge{once}},
		{`{"charge":"charge_then_drop","times":1}`, 0, []charge{once}, []charge{twice}},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			o := start(t)
			o.mode(t, tc.mode)
			if got := o.charge(t, "a", twenty); got != tc.first {
				t.Errorf("got %d, want %d", got, tc.first)
			}
			o.want(t, tc.charged...)
			if got := o.charge(t, "a", twenty); got != 200 {
				t.Errorf("once it is over: %d", got)
			}
			o.want(t, tc.retried...)
		})
	}
}

func TestHangEndsWithItsClient(t *testing.T) {
	t.Parallel()
	o := start(t)
	o.mode(t, `{"charge":"hang","times":1}`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url+"/v1/charges", strings.NewReader(twenty))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := http.DefaultClient.Do(req); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no answer", err)
	}
	o.want(t)
}

// The work is done before the wait: a client that dies in it has been charged.
func TestDelayIsBehindTheCharge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w world.World
		w.SetMode(world.Mode{Charge: world.OK, DelayMS: 3000})
		begin := time.Now()
		rec := httptest.NewRecorder()
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			w.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v1/charges", strings.NewReader(twenty)))
		}()
		synctest.Wait()
		listed := httptest.NewRecorder()
		w.Handler().ServeHTTP(listed, httptest.NewRequest(http.MethodGet, "/v1/charges", http.NoBody))
		if !strings.Contains(listed.Body.String(), "ch_") {
			t.Errorf("while it waits: %s", listed.Body)
		}
		<-answered
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), "ch_") || time.Since(begin) != 3*time.Second {
			t.Errorf("after %v: %d %s", time.Since(begin), rec.Code, rec.Body)
		}
	})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, method, path, body string }{
		{"a charge without customer", "POST", "/v1/charges", `{"amount":1}`},
		{"an unknown mode", "PUT", "/v1/mode", `{"charge":"explode"}`},
		{"a body without end", "POST", "/v1/charges", `{"description":"` + strings.Repeat("x", 100_000) + `"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := start(t)
			if status, answer := o.do(t, tc.method, tc.path, "", tc.body); status != 400 {
				t.Errorf("got %d %s, want 400", status, answer)
			}
			o.want(t)
		})
	}
}

// A key that is forgotten makes another charge, as with a provider that keeps keys
// for a day.
func TestKeysAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world.World{Memory: time.Hour}
		charges := func() (n int) {
			t.Helper()
			rec := httptest.NewRecorder()
			req := httptest.NewRequest(http.MethodPost, "/v1/charges", strings.NewReader(twenty))
			req.Header.Set("Idempotency-Key", "k")
			w.Handler().ServeHTTP(rec, req)
			if rec.Code != 200 {
				t.Fatalf("got %d %s", rec.Code, rec.Body)
			}
			rec = httptest.NewRecorder()
			w.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/v1/charges", http.NoBody))
			var all []charge
			if err := json.Unmarshal(rec.Body.Bytes(), &all); err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		for _, tt := range []struct {
			later time.Duration
			want  int
		}{{0, 1}, {59 * time.Minute, 1}, {time.Minute, 2}, {time.Minute, 2}} {
			time.Sleep(tt.later)
			if n := charges(); n != tt.want {
				t.Errorf("%v later: %d charges, want %d", tt.later, n, tt.want)
			}
		}
	})
}
