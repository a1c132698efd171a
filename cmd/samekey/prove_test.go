package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/prove"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// A run that can't begin makes nothing, and says why in a sentence.
func TestProveThatCantBegin(t *testing.T) {
	const limits, leaves = "--max-dollars and --limit have to be positive", "--local leaves nothing behind: without --keep and --clean"
	for args, says := range map[string]string{
		"eu-west-1":                           `"eu-west-1" is not a flag`,
		"--local --max-dollars 0":             limits,
		"--local --max-dollars -1":            limits,
		"--local --limit 0":                   limits,
		"--local --limit -1s":                 limits,
		"--local --yes --max-dollars 0.01":    "the run may cost 0.99 dollars, and --max-dollars is 0.01",
		"--local --keep":                      leaves,
		"--local --clean":                     leaves,
		"--local":                             "nothing was made; --yes answers the question",
		"":                                    noRegion,
		"--clean":                             noRegion,
		"--check prove_test.go":               "prove_test.go is no report of samekey prove: invalid character 'p' looking for beginning of value",
		"--check /nowhere/samekey-proof.json": "open /nowhere/samekey-proof.json: no such file or directory",
	} {
		t.Setenv("AWS_CONFIG_FILE", "/dev/null")
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
		t.Setenv("AWS_PROFILE", "")
		t.Setenv("AWS_REGION", "")
		t.Setenv("AWS_DEFAULT_REGION", "")
		code, stdout, stderr := call(t, nil, append([]string{"prove"}, strings.Fields(args)...)...)
		if code != 2 || stdout != "" || !strings.HasSuffix(stderr, "samekey prove: "+says+"\n") {
			t.Errorf("%q: %d, %s%s", args, code, stdout, stderr)
		}
	}
}

const noRegion = "no region: set --region, AWS_REGION or AWS_DEFAULT_REGION, or give the profile in AWS_PROFILE a region"

// Without credentials nothing is made, and a sentence says so.
func TestProveWithoutCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	if code, _, stderr := call(t, nil, "prove", "--yes"); code != 2 || !strings.Contains(stderr, "credentials") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%d, %s", code, stderr)
	}
}

// A report that somebody sends is checked by one line, and an exit code.
func TestProveCheck(t *testing.T) {
	const example = "../../proof/prove/samekey-proof.json"
	r, _, err := prove.Check(example, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	good := r.Line()
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.json")
	localtest.Write(t, alone, string(raw))
	failed := filepath.Join(t.TempDir(), prove.JSONFile)
	r.Claims[0].Status, r.Claims[0].Figure, r.Claims[0].Why = prove.Failed, "", "it was seen"
	if err := r.Write(filepath.Dir(failed)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		example: {0, example + " holds: " + good + "\n", ""},
		failed:  {1, failed + " holds: " + r.Line() + "\n", ""},
		alone:   {3, "", "samekey prove: " + alone + " doesn't hold: the Markdown file isn't beside it: " + strings.TrimSuffix(alone, "json") + "md\n"},
	} {
		if code, stdout, stderr := call(t, nil, "prove", "--check", file); code != want.code || stdout != want.stdout || stderr != want.stderr {
			t.Errorf("%s: %d, %q, %q", file, code, stdout, stderr)
		}
	}
	if err := proving(full{}, nil, failed).checkReport(); err == nil || err.Error() != "no space left" {
		t.Errorf("on a full disk: %v", err)
	}
}

// proving are the options of a run that prints to stdout, and checks a report.
func proving(stdout io.Writer, env map[string]string, check string) *proveOptions {
	return &proveOptions{check: check, account: account{env: environment{
		stdout: stdout, screen: stdout, now: time.Now, getenv: func(name string) string { return env[name] },
	}}}
}

// The plan says what would be made, and at what cost; the templates and the policy are printed.
func TestProveDryRun(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, nil, "prove", "--local", "--dry-run", "--yes")
	if want := fmt.Sprintf("%s\n%s\n%s\n", prove.Policy("us-east-1"), prove.Template(true), prove.Nested(true)); code != 0 || stdout != want || !strings.Contains(stderr, "dollars, and removes all of it") {
		t.Errorf("%d, %s, %s", code, stderr, stdout)
	}
}

// A run that comes to no stack is reported, with its reason and its time.
func TestProveThatEndsEarly(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	var stdout, stderr strings.Builder
	env := environment{stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" }, now: func() time.Time { return now }}
	code := run(t.Context(), env, []string{"prove", "--local", "--yes", "--source", t.TempDir()})
	want := fmt.Sprintf("samekey-proof.md: 0 claims passed, 0 failed, %d not shown, ended early, by a stand-in for AWS, on 2026-11-27\n", len(prove.Claims()))
	if code != 3 || stdout.String() != want {
		t.Errorf("%d, %s", code, stdout.String())
	}
	for _, says := range []string{"samekey prove makes the stack ", "\nbuilding the programs\n", "\nsamekey prove: the program can't be built: "} {
		if strings.Count("\n"+stderr.String(), strings.TrimPrefix(says, "\n")) != 1 {
			t.Errorf("it doesn't say %q: %s", says, stderr.String())
		}
	}
	if r, _, err := prove.Check(prove.JSONFile, now); err != nil || !r.Date.Equal(now) || !strings.HasPrefix(r.Trouble, "the program can't be built") {
		t.Errorf("%+v, %v", r, err)
	}
}

// The outcome of a run is an exit code; a report that can't be told is none.
func TestProveTells(t *testing.T) {
	t.Chdir(t.TempDir())
	claims := func(s prove.Status) *prove.Report { return &prove.Report{Claims: []prove.Result{{Status: s}}} }
	lost := errors.New("lost")
	for name, tt := range map[string]struct {
		report *prove.Report
		stdout io.Writer
		err    error
		want   error
	}{
		"passed":            {claims(prove.Passed), io.Discard, nil, nil},
		"failed":            {claims(prove.Failed), io.Discard, nil, exitWith(exitFailed, nil)},
		"failed, and ended": {claims(prove.Failed), io.Discard, lost, exitWith(exitFound, lost)},
		"untold":            {claims(prove.Failed), full{}, lost, errors.New("no space left")},
		"unwritten":         {&prove.Report{Counted: math.Inf(1)}, io.Discard, lost, errors.New("json: unsupported value: +Inf")},
	} {
		if got := proving(tt.stdout, nil, "").tell(tt.report, tt.err); fmt.Sprint(got) != fmt.Sprint(tt.want) || codeOf(got) != codeOf(tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// codeOf is the exit code of an error that has one.
func codeOf(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitDone
}

// What a run on this machine logs is seen if somebody wants it.
func TestProveLogs(t *testing.T) {
	t.Parallel()
	for want, env := range map[io.Writer]map[string]string{io.Discard: nil, os.Stderr: {"PROVE_LOG": "1"}} {
		o := proving(os.Stderr, env, "")
		o.local = true
		if site, err := o.site(t.Context()); err != nil || site.(*prove.Machine).Logs != want {
			t.Errorf("%v: %+v, %v", env, site, err)
		}
	}
}

// left is an account with empty buckets of earlier runs: the expiry in their tags, by name.
type left struct {
	buckets map[string]string
	refused string // what it doesn't answer
}

// Do answers a request as AWS does.
func (l *left) Do(req *http.Request) (*http.Response, error) {
	form := url.Values{}
	if req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if form, err = url.ParseQuery(string(raw)); err != nil {
			return nil, err
		}
	}
	bucket, _, in := strings.Cut(req.URL.Host, ".s3.")
	op := form.Get("Action")
	switch query := req.URL.Query(); {
	case op == "DescribeStacks" && form.Has("StackName"):
		op = "DescribeStack"
	case op != "":
	case !in:
		op = "ListBuckets"
	case query.Has("tagging"):
		op = "GetBucketTagging"
	case query.Has("list-type"):
		op = "ListObjects"
	default:
		op = req.Method + "Bucket"
	}
	if op == l.refused {
		op = "Refused"
	}
	status, body := http.StatusOK, ""
	switch op {
	case "Refused":
		status, body = http.StatusForbidden, "<Error><Code>AccessDenied</Code><Message>no "+l.refused+"</Message></Error>"
	case "GetCallerIdentity":
		body = "<A><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult></A>"
	case "DescribeStacks":
		body = "<A><DescribeStacksResult/></A>"
	case "DescribeStack":
		status, body = http.StatusBadRequest, "<Error><Code>ValidationError</Code><Message>it does not exist</Message></Error>"
	case "ListBuckets":
		for _, name := range slices.Sorted(maps.Keys(l.buckets)) {
			body += "<Bucket><Name>" + name + "</Name></Bucket>"
		}
		body = "<A><Buckets>" + body + "</Buckets></A>"
	case "GetBucketTagging":
		body = "<A><TagSet><Tag><Key>samekey-prove</Key><Value>" + bucket + "</Value></Tag><Tag><Key>samekey-prove-expires</Key><Value>" + l.buckets[bucket] + "</Value></Tag></TagSet></A>"
	case "ListObjects":
		body = "<A/>"
	case "DELETEBucket":
		delete(l.buckets, bucket)
	}
	if !in && status != http.StatusOK { // S3 has no such element around its errors
		body = "<ErrorResponse>" + body + "</ErrorResponse>"
	}
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// What runs have left is removed when it has expired or is named, and somebody agrees.
func TestProveClean(t *testing.T) {
	someAccount(t)
	var seen strings.Builder
	for _, tt := range []struct {
		args, typed string
		refused     string
		full        bool
	}{
		{args: "--yes"},
		{typed: "y\n"},
		{typed: "n\n"},
		{args: "--yes samekey-prove-lost samekey-prove-late"},
		{args: "--yes samekey-prove-old samekey-prove-none"},
		{args: "--yes", refused: "GetCallerIdentity"},
		{args: "--yes", refused: "DescribeStacks"},
		{args: "--yes", refused: "DELETEBucket"},
		{args: "--yes", full: true},
	} {
		account := &left{refused: tt.refused, buckets: map[string]string{
			"samekey-prove-old": "2026-11-27T11:59:59Z", "samekey-prove-older": "2026-11-20T00:00:00Z", "samekey-prove-late": "2026-11-27T12:00:00Z", "samekey-prove-lost": "",
		}}
		clean := func(args string) {
			shown := &safeBuffer{}
			env := environment{
				stdin: strings.NewReader(tt.typed), stdout: shown, stderr: shown, http: account, getenv: func(string) string { return "" },
				now: func() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) },
			}
			if tt.full {
				env.stdout = full{}
			}
			code := run(t.Context(), env, append([]string{"prove", "--clean"}, strings.Fields(args)...))
			fmt.Fprintf(&seen, "$ samekey prove --clean %s\n%s[%d, %s refused, left: %v]\n\n", args, shown, code, cmp.Or(tt.refused, "nothing"), slices.Sorted(maps.Keys(account.buckets)))
		}
		clean(tt.args)
		if tt.typed == "" && tt.refused == "" {
			clean(tt.args) // once more
		}
	}
	golden(t, "prove-clean.txt", seen.String())
}
