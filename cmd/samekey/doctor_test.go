package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor"
	"github.com/samekey/samekey/cmd/samekey/internal/doctor/doctortest"
)

// callAt runs a command on an account in memory, at the bubble's time.
func callAt(t *testing.T, account aws.HTTPClient, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = run(t.Context(), environment{
		stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, getenv: func(string) string { return "" }, now: time.Now, http: account,
	}, args)
	return code, out.String(), errOut.String()
}

// someAccount gives the SDK a Region and credentials, and none of this machine's settings.
func someAccount(t *testing.T) {
	t.Helper()
	bareAWS(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
}

// The report has each mistake with its consequence and its mend, and the
// checks that could not be made.
func TestDoctorReports(t *testing.T) {
	someAccount(t)
	bad := func(w *doctortest.World) {
		w.TTL["AttributeName"] = "expires"
		w.Table["DeletionProtectionEnabled"] = false
		w.Refused["CloudWatch.DescribeAlarms"] = "AccessDeniedException"
	}
	for _, tt := range []struct {
		plant func(*doctortest.World)
		args  string
		code  int
		want  []string
	}{
		{func(*doctortest.World) {}, "--stack orders --client-retries 12h --as operator", 0, []string{"versions: this command was built from a checkout", "mistakes: 0, notes: 0, not checked: 1\n"}},
		{func(*doctortest.World) {}, "--stack orders --client-retries 12h --as operator --json", 0, []string{`"ttl-attribute"`}},
		{bad, "--table records", 3, []string{
			"error: table records: TTL is on expires (ttl-attribute)\n  causes: DynamoDB deletes records", "\n  mend:  TimeToLiveSpecification:", "note: table records: deletion protection is off (protection)\n",
			"alarms, alarms-heard: AccessDeniedException: not for tests\n", "mistakes: 1, notes: 1, not checked: 5\n",
		}},
		{bad, "--table records --json", 3, []string{`"check": "ttl-attribute"`}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := doctortest.Good(time.Now())
			tt.plant(w)
			code, stdout, stderr := callAt(t, w, append([]string{"doctor"}, strings.Fields(tt.args)...)...)
			if code != tt.code || !onlyPlace(stderr) {
				t.Errorf("%s: code %d, want %d; %s", tt.args, code, tt.code, stderr)
			}
			says(t, tt.args, stdout, tt.want...)
		})
	}
}

func TestDoctorWorstInputs(t *testing.T) {
	someAccount(t)
	for _, tt := range []struct {
		args   []string
		aws    aws.HTTPClient
		code   int
		stderr string
	}{
		{nil, nil, 2, "no table: set"},
		{[]string{"--table", "t", "--as", "king"}, nil, 2, `--as is "king": give one of function, worker, operator`},
		{[]string{"--table", "t", "--sample", "0"}, nil, 2, "--sample"},
		{[]string{"--table", "t", "--sample", "1001"}, nil, 2, "--sample"},
		{[]string{"--table", "nothing", "--sample", "1000"}, doctortest.Good(time.Now()), 1, "no table nothing in this account and Region"},
		{[]string{"--table", "nothing", "--sample", "1"}, doctortest.Good(time.Now()), 1, "no table nothing in this account and Region"},
		{[]string{"--table", "nothing"}, doctortest.Good(time.Now()), 1, "no table nothing in this account and Region"},
		{[]string{"--table", "t", "--profile", "nobody"}, nil, 2, "nobody"},
		{[]string{"--stack", "orders", "--table", "nothing"}, doctortest.Good(time.Now()), 1, "no table nothing in this account and Region"},
		{[]string{"--stack", "nothing"}, doctortest.Good(time.Now()), 1, "Stack with id nothing does not exist"},
		{[]string{"--table", "records"}, refusing{"ThrottlingException"}, 1, "ThrottlingException"},
	} {
		code, stdout, stderr := callAt(t, tt.aws, append([]string{"doctor"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.stderr) || stdout != "" {
			t.Errorf("%v: code %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
	// The stack's own table wins over the environment's. A report that can't
	// be printed is an error.
	env := environment{stdout: io.Discard, stderr: io.Discard, now: time.Now, http: doctortest.Good(time.Now()), getenv: func(name string) string {
		return map[string]string{"IDEM_TABLE": "nothing"}[name]
	}}
	if code := run(t.Context(), env, []string{"doctor", "--stack", "orders"}); code != 0 {
		t.Errorf("code %d, the stack's table is another", code)
	}
	env.stdout = full{}
	for _, form := range []string{"--json", "--json=false"} {
		if code := run(t.Context(), env, []string{"doctor", "--stack", "orders", form}); code != 1 {
			t.Errorf("%s: code %d, the disk is full", form, code)
		}
	}
	// Without any permission, the report has no good check and no mistake, and says so.
	for _, tt := range []struct {
		code   int
		stderr string
		flags  []string
	}{{1, "nothing could be checked", nil}, {3, "checks could not be made", []string{"--strict"}}} {
		code, stdout, stderr := callAt(t, refusing{"AccessDeniedException"}, append([]string{"doctor", "--table", "records", "--json"}, tt.flags...)...)
		var r doctor.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != tt.code || !strings.Contains(stderr, tt.stderr) ||
			len(r.Good) != 0 || len(r.Findings) != 0 || len(r.NotChecked) != len(doctor.All()) {
			t.Errorf("code %d, %v, %s%s", code, err, stdout, stderr)
		}
	}
}

// Other services are asked at the table's own place, or not at all.
func TestOnlyTheTableIsAsked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		flag string
		env  map[string]string
		want string
	}{
		{"", nil, ""},
		{"http://flag", map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "http://env"}, "only DynamoDB was asked, at http://flag; to ask the other services too, set AWS_ENDPOINT_URL"},
		{"", map[string]string{"AWS_ENDPOINT_URL_DYNAMODB": "http://env"}, "only DynamoDB was asked, at http://env; to ask the other services too, set AWS_ENDPOINT_URL"},
		{"http://flag", map[string]string{"AWS_ENDPOINT_URL": "http://all"}, ""},
	} {
		op := &operator{account: account{endpoint: tt.flag, env: environment{getenv: func(name string) string { return tt.env[name] }}}}
		if got := op.onlyTable(); got != tt.want {
			t.Errorf("%q, %v: %q, want %q", tt.flag, tt.env, got, tt.want)
		}
	}
}

// With --strict, a check without an answer of AWS fails the command. A
// missing flag, or a missing part of a deployment, doesn't.
func TestDoctorStrict(t *testing.T) {
	someAccount(t)
	for name, tt := range map[string]struct {
		plant func(*doctortest.World)
		code  int
	}{
		"all answers":           {func(*doctortest.World) {}, 0},
		"no answer of an alarm": {func(w *doctortest.World) { w.Refused["CloudWatch.DescribeAlarms"] = "AccessDeniedException" }, 3},
		"no answer of a bus":    {func(w *doctortest.World) { w.Refused["EventBridge.DescribeEventBus"] = "AccessDeniedException" }, 3},
		"a bus that is gone":    {func(w *doctortest.World) { w.Buses = nil }, 3},
		"no aliases":            {func(w *doctortest.World) { w.Refused["Lambda.ListAliases"] = "AccessDeniedException" }, 3},
		"an empty table":        {func(w *doctortest.World) { w.Items = nil }, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := doctortest.Good(time.Now())
			tt.plant(w)
			if code, stdout, stderr := callAt(t, w, "doctor", "--strict", "--stack", "orders"); code != tt.code {
				t.Errorf("%s: code %d, %s%s", name, code, stdout, stderr)
			}
		})
	}
}

// refusing answers every request with an AWS error.
type refusing struct{ code string }

func (r refusing) Do(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Errortype": {r.code}},
		Body:   io.NopCloser(strings.NewReader(`{"__type":"com.amazonaws#` + r.code + `","message":"not for tests"}`)),
	}, nil
}

// With a local database, only the table is examined: no request goes to a real account.
func TestDoctorOnDynamoDBLocal(t *testing.T) {
	d := newDesk(t)
	calls := 0
	if _, err := d.pay(t.Context(), &calls); err == nil {
		t.Fatal("the call has an outcome")
	}
	code, stdout, stderr := call(t, d.env, "doctor", "--json", "--as", "operator", "--endpoint-url", os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"))
	var r doctor.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err, stdout, stderr)
	}
	wrong := map[string]bool{}
	for _, f := range r.Findings {
		wrong[f.Check] = true
	}
	// The desk's table has no TTL and no protection, since tests read expired records.
	if code != 3 || len(wrong) > 3 || !wrong["ttl-off"] || !wrong["protection"] {
		t.Errorf("code %d, %+v", code, r.Findings)
	}
	if len(r.Good) < 6 {
		t.Errorf("good: %v, not checked: %+v", r.Good, r.NotChecked)
	}
}
