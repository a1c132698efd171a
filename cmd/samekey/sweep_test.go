package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// lambdaSays is a Lambda whose function gives one answer.
type lambdaSays struct {
	answer, fault string
	got           []string
}

func (a *lambdaSays) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	a.got = append(a.got, req.Method+" "+req.URL.Path+" "+string(body))
	resp := &http.Response{StatusCode: http.StatusOK, Request: req, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.answer))}
	if a.fault != "" {
		resp.Header.Set("X-Amz-Function-Error", a.fault)
	}
	return resp, err
}

// The command does nothing of its own: the worker has sinks, queue and cursor. One of its
// own used the worker's cursor, emptied its list of failures and delivered nothing.
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
		want string
	}{
		"swept":     {lambdaSays{answer: report}, nil, 0, "7 items seen, 3 jobs delivered, 2 tickets made, 0 operations stuck, 1 records let go; the pass is complete: true\n2 too young for a sweep: stream and completer come first; sweep again after 2026-11-26 09:15:01 UTC\nundelivered: 3\n"},
		"JSON":      {lambdaSays{answer: report}, []string{"--json"}, 0, `"delivered": 3`},
		"failed":    {lambdaSays{answer: `{"errorMessage":"scan of segment 1"}`, fault: "Unhandled"}, nil, 1, "the run left work undone, which the next run tries first: Unhandled: scan of segment 1"},
		"no worker": {lambdaSays{answer: `"hello"`}, nil, 1, "it is no worker"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			env := environment{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, http: &tt.lambdaSays, getenv: func(string) string { return "" }}
			code := run(t.Context(), env, append([]string{"sweep", "--function", "shop-worker"}, tt.args...))
			if all := stdout.String() + stderr.String(); code != tt.code || !strings.Contains(all, tt.want) || !strings.Contains(all, "function shop-worker, Region us-east-1") {
				t.Errorf("code %d, %s", code, all)
			}
			if want := "POST /2015-03-31/functions/shop-worker/invocations " + sweepNow; len(tt.got) != 1 || tt.got[0] != want {
				t.Errorf("asked %q", tt.got)
			}
		})
	}
	if code, _, stderr := call(t, nil, "sweep"); code != 2 || !strings.Contains(stderr, "samekey list --scan") {
		t.Errorf("without a function: code %d, %s", code, stderr)
	}
}
