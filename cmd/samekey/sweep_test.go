package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/background/stream"
)

// lambdaSays is a Lambda service whose function always gives the same answer.
type lambdaSays struct {
	answer, fault string
	err           error // an error of the connection
	got           []string
}

func (a *lambdaSays) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	a.got = append(a.got, req.Method+" "+req.URL.Path+" "+string(body))
	if err = errors.Join(err, a.err); err != nil {
		return nil, err
	}
	resp := &http.Response{StatusCode: http.StatusOK, Request: req, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.answer))}
	if a.fault != "" {
		resp.Header.Set("X-Amz-Function-Error", a.fault)
	}
	return resp, nil
}

// sweep invokes the worker, which has sinks, queue and cursor. A sweep in the command
// itself once used the worker's cursor, emptied the list of failures and delivered nothing.
func TestSweepIsTheWorkers(t *testing.T) {
	bareAWS(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	const report = `{"complete":true,"young":2,"young_until":"2026-11-26T09:15:00.5Z","scanned":7,"delivered":3,"queued":2,"let_go":1,"by_reason":{"undelivered":{"count":3,"oldest_s":9}}}`
	for name, tt := range map[string]struct {
		lambdaSays
		args []string
		code int
		want string // after the function's name
	}{
		"swept": {lambdaSays{answer: report}, nil, 0, "7 items seen, 3 jobs delivered, 2 tickets made, 0 operations made stuck, 1 records let go; whole table seen: true\n" +
			"2 jobs and operations skipped: the stream's readers may still handle them; sweep again after 2026-11-26 09:15:01 UTC\nundelivered: 3\n"},
		"nothing": {lambdaSays{answer: `{"pages":1}`}, nil, 0, "0 items seen, 0 jobs delivered, 0 tickets made, 0 operations made stuck, 0 records let go; whole table seen: false\n"},
		"JSON":    {lambdaSays{answer: report}, []string{"--json"}, 0, asJSON(t, report)},
		"failed": {
			lambdaSays{answer: `{"errorMessage":"scan of segment 1"}`, fault: "Unhandled"},
			nil, 1,
			"samekey sweep: the sweep failed: Unhandled: scan of segment 1; the next run continues this sweep\n",
		},
		"no worker": {
			lambdaSays{answer: `"hello"`},
			nil, 1,
			"samekey sweep: the function is not a worker: it did not answer with a sweep's report: json: cannot unmarshal string into Go value of type stream.Report\n",
		},
		"no answer": {
			lambdaSays{err: errors.New("reset")},
			nil, 1,
			"samekey sweep: operation error Lambda: Invoke, exceeded maximum number of attempts, 1, https response error StatusCode: 0, RequestID: , request send failed, reset\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			env := environment{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, http: &tt.lambdaSays, getenv: func(string) string { return "" }}
			code := run(t.Context(), env, append([]string{"sweep", "--function", "shop-worker"}, tt.args...))
			if diff := cmp.Diff("function shop-worker, Region us-east-1\n"+tt.want, stderr.String()+stdout.String()); diff != "" || code != tt.code {
				t.Errorf("code %d (-want +got):\n%s", code, diff)
			}
			if want := "POST /2015-03-31/functions/shop-worker/invocations " + sweepNow; len(tt.got) != 1 || tt.got[0] != want {
				t.Errorf("asked %q", tt.got)
			}
		})
	}
	if code, _, stderr := callAt(t, &lambdaSays{answer: report}, "sweep", "more"); code != 2 || !strings.Contains(stderr, `unexpected argument "more"`) {
		t.Errorf("with an argument: code %d, %s", code, stderr)
	}
	if code, _, stderr := call(t, nil, "sweep"); code != 2 || !strings.Contains(stderr, "samekey list --scan") {
		t.Errorf("without a function: code %d, %s", code, stderr)
	}
}

// asJSON returns the report of a sweep as the command prints it.
func asJSON(t *testing.T, report string) string {
	t.Helper()
	var r stream.Report
	if err := json.Unmarshal([]byte(report), &r); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}
