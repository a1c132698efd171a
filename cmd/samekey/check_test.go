package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
	"github.com/samekey/samekey/internal/testkit/checktest"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

const secret = "s3cret"

// wrongAPI returns the URL of an API with these faults.
func wrongAPI(t *testing.T, faults ...string) (string, *checktest.Server) {
	t.Helper()
	api := checktest.Wrong(check.DefaultRacers, faults...)
	srv := httptest.NewServer(api)
	t.Cleanup(srv.Close)
	return srv.URL + "/orders?token=" + secret, api
}

// whole returns the flags of an examination that makes every check.
func whole(url string, more ...string) []string {
	return append([]string{
		"check", "-timeout=5m", "-total=10m", "-body", `{"item":"pizza"}`, "-other-body", `{"item":"pasta"}`, "-refused-body", `{}`,
		"-other-path=/refunds", "-other-method=PUT", "-origin=https://shop.example",
		"-header-env", "Authorization=JANE", "-other-caller-env", "Authorization=OMAR", url,
	}, more...)
}

var callers = map[string]string{"JANE": "Bearer " + secret + "-of-jane", "OMAR": "Bearer " + secret + "-of-omar"}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		faults []string
		args   []string
		code   int
		prints []string
	}{
		{"right", nil, []string{"-yes"}, 0, []string{"Rules broken: default 0, "}},
		{"wrong", []string{"burns"}, []string{"-yes"}, 1, []string{"refusal     FAULT", "refusal-burns: After the API refuses", "docs/use/http.md#what-is-kept", "Rules broken: default 1, "}},
		{"right under another contract", []string{"burns", "no-lifetime"}, []string{"-yes", "-contract=ietf"}, 0, []string{"Rules broken: default 2, ", "IETF draft 0\n"}},
		{"wrong under another contract", nil, []string{"-yes", "-contract=stripe"}, 1, []string{"Stripe 2, "}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			url, _ := wrongAPI(t, tc.faults...)
			code, stdout, stderr := call(t, callers, whole(url, tc.args...)...)
			for _, text := range tc.prints {
				if !strings.Contains(stdout, text) {
					t.Errorf("the report doesn't say %q", text)
				}
			}
			if code != tc.code || strings.Contains(stdout+stderr, secret) || !strings.Contains(stderr, "All keys begin with samekey-check-") || t.Failed() {
				t.Errorf("code %d, want %d\n%s%s", code, tc.code, stderr, stdout)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	url, _ := wrongAPI(t, "burns")
	code, stdout, stderr := call(t, callers, whole(url, "-yes", "-json", "-name=run1")...)
	var report check.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v in %s%s", err, stdout, stderr)
	}
	if code != 1 || report.Faults != 1 || report.Keys != "samekey-check-run1-" || !strings.HasSuffix(report.URL, "/orders") || !strings.HasPrefix(stdout, "{\n  \"") || strings.Contains(stdout, secret) {
		t.Errorf("code %d: %s", code, stdout)
	}
}

// The command sends nothing before a person has agreed to the number of requests.
func TestCheckAsks(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]struct {
		code, orders int
	}{
		"":      {2, 0},
		"n\n":   {2, 0},
		"\n":    {2, 0},
		"yes\n": {0, 4},
		"Y\n":   {0, 4},
		"y\nno": {0, 4},
	} {
		url, api := wrongAPI(t)
		code, _, stderr := callWith(t, typed, callers, whole(url)...)
		if code != want.code || api.Orders() != want.orders || !strings.Contains(stderr, "carries out 4 of the requests, and a wrong API carries out up to ") {
			t.Errorf("%q: code %d, %d orders: %s", typed, code, api.Orders(), stderr)
		}
	}
	url, api := wrongAPI(t)
	if code, stdout, stderr := call(t, callers, whole(url, "-plan", "-yes")...); code != 0 || stdout != "" || api.Orders() != 0 {
		t.Errorf("code %d: %s%s", code, stderr, stdout)
	}
}

func TestCheckCalledTheWrongWay(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "no URL: give"},
		{[]string{"http://host"}, 2, "no body: give --body, --body-file or --no-body"},
		{[]string{"http://host", "-body={}", "more"}, 2, `too many arguments, from "more" on`},
		{[]string{"http://host", "-body={}", "-body-file=" + file}, 2, "give the body as text or as a file"},
		{[]string{"http://host", "-body-file=/nowhere.json"}, 2, "/nowhere.json"},
		{[]string{"http://host", "-body={}", "-header=X"}, 2, "must be NAME=VALUE"},
		{[]string{"http://host", "-body={}", "-header-env=Authorization=NOBODY"}, 2, "the environment variable NOBODY for the header Authorization"},
		{[]string{"http://host", "-body={}", "-other-caller-env=Authorization=NOBODY"}, 2, "the environment variable NOBODY for the header Authorization"},
		{[]string{"http://host", "-body={}", "-timeout=0s"}, 2, "--timeout must be above 0"},
		{[]string{"http://host", "-body={}", "-total=0s"}, 2, "--total must be above 0"},
		{[]string{"http://host", "-no-body", "-plan"}, 0, "samekey check sends at most "},
		{[]string{"http://host", "-body=1", "-plan"}, 0, "samekey check sends at most "},
		{[]string{"http://host", "-body={}", "-contract=adyen"}, 2, `unknown contract "adyen"`},
		{[]string{"http://127.0.0.1:1", "-body-file=" + file, "-yes"}, 3, "nothing listens at 127.0.0.1:1"},
	} {
		code, _, stderr := call(t, nil, append([]string{"check"}, tc.args...)...)
		if code != tc.code || !strings.Contains(stderr, tc.says) {
			t.Errorf("%v: code %d, want %d: %s", tc.args, code, tc.code, stderr)
		}
	}
}

// The template comes from flags, files and the environment.
func TestCheckFills(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "body.json")
	localtest.Write(t, file, "from a file")
	var o checkOptions
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.register(fs)
	if err := fs.Parse([]string{
		"--body-file", file, "--other-body-file", file, "--refused-body", "{}", "--method=PUT", "--header=A=1", "--header=A=2", "--header-env=B=JANE",
		"--other-caller-env=C=OMAR", "--other-path=/p", "--other-method=PATCH", "--origin=o", "--key-optional", "--id-pointer=/x",
		"--update-path=u", "--update-body=1", "--complete-path=d", "--complete-body=2", "--cancel-path=c", "--cancel-body=3",
	}); err != nil {
		t.Fatal(err)
	}
	err := o.fill(environment{getenv: func(name string) string { return callers[name] }})
	want := check.Template{
		Method: "PUT", Header: http.Header{"A": {"1", "2"}, "B": {callers["JANE"]}}, Body: []byte("from a file"),
		OtherBody: []byte("from a file"), RefusedBody: []byte("{}"), OtherPath: "/p", OtherMethod: "PATCH", OtherCaller: http.Header{"C": {callers["OMAR"]}},
		Origin: "o", KeyOptional: true, Checkout: check.Checkout{
			ID: "/x", Update: check.Operation{Path: "u", Body: []byte("1")}, Complete: check.Operation{Path: "d", Body: []byte("2")}, Cancel: check.Operation{Path: "c", Body: []byte("3")},
		},
	}
	if diff := cmp.Diff(want, o.template); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// A report that can't be printed is an error.
func TestCheckOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		o := checkOptions{json: asJSON, yes: true, options: check.Options{Timeout: time.Second, Total: time.Second}, template: check.Template{URL: "http://127.0.0.1:1", NoBody: true}}
		if err := o.run(t.Context(), environment{stdout: full{}, stderr: io.Discard}); codeOf(err) != exitFound || err.Error() != "no space left" {
			t.Errorf("as JSON %v: %v", asJSON, err)
		}
	}
}

// An examination that ends early is an error, even if it found no fault.
func TestCheckNotToTheEnd(t *testing.T) {
	t.Parallel()
	var n atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Idempotency-Expires", "Fri, 01 Jan 2100 00:00:00 GMT")
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(srv.Close)
	code, stdout, stderr := call(t, nil, "check", "-body={}", "-yes", srv.URL)
	if code != 3 || !strings.Contains(stdout, "closed the connection") {
		t.Errorf("code %d: %s%s", code, stderr, stdout)
	}
}

// The contract of a commerce protocol examines a merchant's checkout,
// and its report has one column.
func TestCheckOfAMerchant(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ucp    bool
		faults []string
		args   []string
		code   int
		prints string
	}{
		"ACP":       {false, nil, []string{"-contract=acp"}, 0, "\nRules broken: ACP 0\n"},
		"UCP":       {true, nil, []string{"-contract=ucp"}, 0, "\nRules broken: UCP 0\n"},
		"wrong":     {false, []string{"complete-reruns"}, []string{"-contract=acp"}, 1, "breaks: ACP, agentic checkout, section 6.3\n"},
		"no paths":  {false, nil, []string{"-contract=acp", "-cancel-path=x"}, 2, ""},
		"no object": {false, nil, []string{"-contract=acp", "-complete-body=x"}, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(checktest.WrongMerchant(tt.ucp, check.DefaultRacers, tt.faults...))
			t.Cleanup(srv.Close)
			args := append([]string{
				"check", "-yes", "-timeout=5m", "-total=10m", "-header-env", "Authorization=JANE", "-other-caller-env", "Authorization=OMAR",
				"-body", `{"items":[{"id":"a","quantity":1},{"id":"b","quantity":2}]}`, srv.URL + "/sessions",
			}, tt.args...)
			if code, stdout, stderr := call(t, callers, args...); code != tt.code || !strings.Contains(stdout, tt.prints) {
				t.Errorf("code %d, want %d\n%s%s", code, tt.code, stderr, stdout)
			}
		})
	}
}
