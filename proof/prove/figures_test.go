package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/proof/prove/fault"
)

// The calls, units and dollars that a run expects are those of the performance page.
func TestFiguresOfThePage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../bench/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var page struct {
		Paths []struct {
			ID      string         `json:"id"`
			Calls   map[string]int `json:"calls"`
			Units   int            `json:"write_units"`
			Own     int            `json:"your_write_units"`
			Dollars json.Number    `json:"dollars_per_million"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{"new": "new", "replay": "replay", "phases": "phases-2"}
	for _, a := range ways() {
		found := false
		for _, p := range page.Paths {
			if p.ID != ids[a.name] {
				continue
			}
			found = true
			calls := map[string]int{}
			for _, c := range a.calls {
				calls[c]++
			}
			for name, n := range p.Calls {
				if calls[name] != n || len(calls) != len(p.Calls) {
					t.Errorf("%s makes %v, and the page says %v", a.name, calls, p.Calls)
				}
			}
			if p.Units != a.units+a.refused || p.Own != a.own { // a refused write of less than a KB has a unit, in no answer
				t.Errorf("%s takes %d and %d units, and the page says %d and %d", a.name, a.units, a.own, p.Units, p.Own)
			}
			if a.refused == 0 && !strings.Contains(a.sum(), " "+p.Dollars.String()+" dollars a million") {
				t.Errorf("%s: %s, and the page says %s dollars", a.name, a.sum(), p.Dollars)
			}
		}
		if !found {
			t.Errorf("the page has no %s", a.name)
		}
	}
}

// Lambda's reports, as text and as JSON, are read; a start beyond its limit fails, and a log without a report shows
// nothing.
func TestInit(t *testing.T) {
	t.Parallel()
	const asText, asJSON = "REPORT RequestId: a\tDuration: 2.1 ms\tInit Duration: 61.26 ms\t\n", `{"type":"platform.report","record":{"metrics":{"durationMs":2.1,"initDurationMs":74.9}}}`
	for _, test := range []struct {
		logs   []string
		status Status
		says   string
	}{
		{[]string{asText, asJSON}, Passed, "75 ms, the longest of 2 starts"},
		{[]string{asText, "REPORT RequestId: a\tDuration: 2.1 ms\n"}, Passed, "61 ms, the longest of 1 starts"},
		{[]string{strings.Replace(asText, "61.26", "10000", 1)}, Failed, ""},
		{[]string{strings.Replace(asText, "61", strings.Repeat("9", 400), 1)}, NotShown, ""},
		{[]string{"START"}, NotShown, ""},
		{nil, NotShown, ""},
	} {
		figure, err := examineInit(t.Context(), &Place{starts: test.logs})
		if r := (Claim{}).judge(&Place{}, figure, err); r.Status != test.status || r.Figure != test.says {
			t.Errorf("%q: %+v", test.logs, r)
		}
	}
}

// measuredAPI answers with figures, and keeps what it was asked.
type measuredAPI struct {
	first   int // the status of requests that nobody measures
	figures string
	asked   []string
}

func (m *measuredAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	raw, _ := io.ReadAll(r.Body)
	measured := r.Header.Get(fault.Header) == fault.Measured
	m.asked = append(m.asked, fmt.Sprintf("%s %s %s %t", r.URL.Path, r.Header.Get("Idempotency-Key"), latitudeIn(raw), measured))
	resp := &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}
	if !measured {
		resp.StatusCode = m.first
	} else {
		resp.Header.Set(fault.Header, m.figures)
	}
	return resp, nil
}

// Each way is measured by requests under keys of their own; a replay by the second request under its key.
func TestMeasured(t *testing.T) {
	t.Parallel()
	for _, a := range ways() {
		figures, err := json.Marshal(fault.Figures{Calls: a.calls, Units: float64(a.units), Own: float64(a.own), Refused: a.refused})
		if err != nil {
			t.Fatal(err)
		}
		var all, one []string
		for i := range rounds {
			name := a.route[1:]
			if a.name == "replay" {
				name = "again"
				all = append(all, fmt.Sprintf("%s samekey-prove-figures-again-%d-0123456789abcdef %v false", a.route, i, latitude(i)))
			}
			all = append(all, fmt.Sprintf("%s samekey-prove-figures-%s-%d-0123456789abcdef %v true", a.route, name, i, latitude(i)))
			one = all[:min(len(all), 1)]
		}
		for _, test := range []struct {
			first   int
			figures string
			asked   []string
			shown   bool
		}{
			{http.StatusCreated, string(figures), all, true},
			{http.StatusConflict, string(figures), map[bool][]string{true: one, false: all}[a.name == "replay"], a.name != "replay"},
			{http.StatusCreated, "", all[:len(all)/rounds], false},
		} {
			m := &measuredAPI{first: test.first, figures: test.figures}
			p := &Place{API: "https://api", HTTP: &http.Client{Transport: m}, meter: &meter{most: Cost{Bookings: 2 * rounds}}}
			_, err := a.examine(t.Context(), p)
			if diff := cmp.Diff(test.asked, m.asked); diff != "" || dark(err) == test.shown || err != nil && test.shown {
				t.Errorf("%s: %v\n%s", a.name, err, diff)
			}
		}
	}
	if got := (way{units: 1, own: 1}).sum(); got != "0 calls, 1 write units and 1 of its own items, 0.625 dollars a million" {
		t.Error(got)
	}
}

// invoked are the answers of a function, the first starts at once; one after them is that of later invocations.
type invoked struct {
	mu    sync.Mutex
	n     int
	out   []lambda.InvokeOutput
	hangs bool
}

func (f *invoked) place() *Place {
	return &Place{Plain: "plain", Lambda: lambda.New(lambda.Options{Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("invoked", func(ctx context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, meta middleware.Metadata, err error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.hangs {
				<-ctx.Done()
				return out, meta, ctx.Err()
			}
			asked, is := in.Parameters.(*lambda.InvokeInput)
			if !is || *asked.FunctionName != "plain" || asked.LogType != types.LogTypeTail {
				return out, meta, fmt.Errorf("%+v", asked)
			}
			next := f.out[min(f.n, len(f.out)-1)]
			f.n++
			out.Result = &next
			return out, meta, nil
		}), middleware.After)
	}}})}
}

// Of the invocations at once, those count that a process answers first, and their logs are kept.
func TestStart(t *testing.T) {
	t.Parallel()
	answer := func(events int, log string) lambda.InvokeOutput {
		raw, err := json.Marshal(fault.Start{Events: events})
		out := lambda.InvokeOutput{Payload: raw}
		if err != nil {
			t.Fatal(err)
		}
		if log != "" {
			out.LogResult = aws.String(base64.StdEncoding.EncodeToString([]byte(log)))
		}
		return out
	}
	first, silent, later := answer(1, "START"), answer(1, ""), answer(2, "more")
	const whole = "0 ms for a first answer, 0 ms for a later one; 0 µs of the start are Samekey's"
	for _, test := range []struct {
		out          []lambda.InvokeOutput
		figure, logs string
		n            int
	}{
		{[]lambda.InvokeOutput{first, first, first, first, later}, whole, `["START" "START" "START" "START"]`, 2 * startsAtOnce},
		{[]lambda.InvokeOutput{first, later}, whole, `["START"]`, 2 * startsAtOnce},
		{[]lambda.InvokeOutput{silent, later, later, later, first, first, first, later}, whole, `[""]`, 2 * startsAtOnce},
		{[]lambda.InvokeOutput{later}, "", `[]`, 2 * startsAtOnce},
		{[]lambda.InvokeOutput{{Payload: []byte("no JSON")}}, "", `[]`, startsAtOnce},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &invoked{out: test.out}
			p := f.place()
			figure, err := examineStart(t.Context(), p)
			if logs := fmt.Sprintf("%q", p.starts); figure != test.figure || (err == nil) != (figure != "") || err != nil && !dark(err) || logs != test.logs || f.n != test.n {
				t.Errorf("%q, %s, %d invocations, %v", figure, logs, f.n, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := &invoked{hangs: true}
		began := time.Now()
		if _, err := f.place().start(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 40*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := f.place().start(ended); !errors.Is(err, context.Canceled) || time.Since(began) != 40*time.Second {
			t.Errorf("an invocation that doesn't begin: after %s: %v", time.Since(began), err)
		}
	})
}
