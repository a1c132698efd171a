package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
)

// desk is a table, an application on it, and an operator's environment.
type desk struct {
	store  *dynamo.Store
	engine *idem.Engine
	env    map[string]string
}

// unhurried has a client wait for a slow machine's answers.
func unhurried(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient }

// newDesk sets the process's environment, as the command's client reads that.
func newDesk(t *testing.T) *desk {
	t.Helper()
	db := dynamotest.Start(t)
	bareAWS(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "local")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "local")
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", db.Endpoint)
	client, err := dynamo.NewClient(unhurried)
	if err != nil {
		t.Fatal(err)
	}
	table := "stuck-" + rand.Text()
	if _, err := client.CreateTable(t.Context(), dynamo.CreateTableInput(table)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	store, err := dynamo.New(client, table)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{store: store, env: map[string]string{"IDEM_TABLE": table, "USER": "jane"}, engine: idem.New(store, func(o *idem.Options) { o.Namespace = "rides" })}
}

// ok runs a command that must succeed, and returns what it prints.
func (d *desk) ok(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(t, d.env, append([]string{"stuck"}, args...)...)
	if code != 0 {
		t.Fatalf("%v: code %d: %s", args, code, stderr)
	}
	return stdout
}

// fails runs a command that must fail so, and say so.
func (d *desk) fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	got, stdout, stderr := call(t, d.env, append([]string{"stuck"}, args...)...)
	if got != code || !strings.Contains(stderr, want) || stdout != "" {
		t.Errorf("%v: code %d, %q, %q; want %d, %q", args, got, stdout, stderr, code, want)
	}
}

// entry is the only one in the list.
func (d *desk) entry(t *testing.T) stream.Entry {
	t.Helper()
	var report stream.Report
	if err := json.Unmarshal([]byte(d.ok(t, "list", "-json", "-pages", "1000")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Entries) != 1 || !report.Complete {
		t.Fatalf("listed %+v", report)
	}
	return report.Entries[0]
}

// unlisted fails the test unless the list is empty.
func (d *desk) unlisted(t *testing.T) {
	t.Helper()
	if out := d.ok(t, "list", "-pages", "1000"); out != "" {
		t.Errorf("listed %s", out)
	}
}

var errTimeout = errors.New("timeout")

// pay calls a provider without keys; the first time nobody knows what came of it.
func (d *desk) pay(ctx context.Context, key string, calls *int) (idem.Result, error) {
	return d.engine.Do(ctx, idem.Request{Key: key, Method: "POST", Route: "POST /rides", Body: []byte(`{"card":"secret"}`)},
		func(ctx context.Context) (idem.Response, error) {
			charge, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (string, error) {
				if *calls++; *calls == 1 {
					return "", errTimeout
				}
				return "ch_new", nil
			}, idem.NotIdempotent())
			return idem.Response{Status: 201, Body: []byte(charge)}, err
		})
}

func TestStuckRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		flag, value string
		calls       int
		charge      string
	}{
		"the call was made":     {"-result", `"ch_found"`, 1, "ch_found"},
		"the call was not made": {"-not-made", "", 2, "ch_new"},
	} {
		t.Run(name, func(t *testing.T) {
			d, calls := newDesk(t), 0
			if _, err := d.pay(t.Context(), "k", &calls); err == nil {
				t.Fatal("answered")
			}
			e := d.entry(t)
			if e.Why != stream.WhyUnknown || e.Route != "POST /rides" || e.Phase != "charge_created" {
				t.Errorf("listed %+v", e)
			}
			d.fails(t, 1, `the call of phase "charge_created" has an unknown outcome`, "retry", e.PK)
			args := []string{"retry", "-yes", tt.flag}
			if tt.value != "" {
				args = append(args, tt.value)
			}
			if out := d.ok(t, append(args, e.PK)...); !strings.Contains(out, "open") {
				t.Errorf("printed %q", out)
			}
			d.unlisted(t)
			d.fails(t, 1, "not stuck", append(args, e.PK)...)
			res, err := d.pay(t.Context(), "k", &calls)
			if err != nil || string(res.Body) != tt.charge || calls != tt.calls {
				t.Errorf("got %s, %v after %d calls", res.Body, err, calls)
			}
		})
	}
}

func TestStuckAnswer(t *testing.T) {
	d, calls := newDesk(t), 0
	if _, err := d.pay(t.Context(), "k", &calls); err == nil {
		t.Fatal("answered")
	}
	pk := d.entry(t).PK
	d.fails(t, 1, "-status 0", "answer", pk)
	d.fails(t, 1, "-retention is at least", "answer", "-status", "410", "-retention", "1m", pk)
	body := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(body, []byte(`{"error":"refunded"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d.fails(t, 1, "no such file", "answer", "-status", "410", "-body-file", body+".not", pk)
	if out := d.ok(t, "answer", "-yes", "-status", "410", "-body-file", body, "-content-type", "application/problem+json", pk); !strings.Contains(out, "410") {
		t.Errorf("printed %q", out)
	}
	d.unlisted(t)
	res, err := d.pay(t.Context(), "k", &calls)
	if err != nil || res.Status != 410 || string(res.Body) != `{"error":"refunded"}` || res.Header.Get("Content-Type") != "application/problem+json" ||
		!res.Replayed || calls != 1 {
		t.Errorf("got %+v, %v after %d calls", res, err, calls)
	}
	d.fails(t, 1, "not stuck", "answer", "-yes", "-status", "200", pk)
}

func TestStuckRedrive(t *testing.T) {
	d := newDesk(t)
	if _, err := d.engine.Do(t.Context(), idem.Request{Key: "k", Method: "POST"}, func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", "jane's address"), idem.NewJob("mail", "omar's"))
	}); err != nil {
		t.Fatal(err)
	}
	pk := d.recordOf(t)
	d.fails(t, 1, "no such job is parked", "redrive", pk)
	rec, err := d.store.Load(t.Context(), pk)
	if err != nil {
		t.Fatal(err)
	}
	d.parkFirst(t)
	out := d.ok(t, "list", "-pages", "1000")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "job "+rec.ID+".0.0 mail") ||
		!strings.Contains(lines[1], pk) || !strings.Contains(lines[1], "550 no such user") {
		t.Errorf("listed\n%s", out)
	}
	d.fails(t, 1, "no such job is parked", "redrive", pk, "0.1")
	d.fails(t, 1, "another operation", "redrive", pk, "ANOTHER.0.0")
	d.fails(t, 1, "another operation", "redrive", pk, rec.ID+".0.0", "ANOTHER.0.0")
	if now, err := d.store.Load(t.Context(), pk); err != nil || now.Jobs["0.0"].Failed == "" {
		t.Errorf("%+v, %v: a job of another operation was handed out", now.Jobs, err)
	}
	if out := d.ok(t, "redrive", pk, rec.ID+".0.0"); !strings.HasPrefix(out, "1 ") {
		t.Errorf("printed %q", out)
	}
	d.unlisted(t)
}

// parkFirst sweeps ahead in time with a sink that refuses jobs 0.0 for good.
func (d *desk) parkFirst(t *testing.T) {
	t.Helper()
	sink := jobs.SinkFunc(func(_ context.Context, job jobs.Delivery) error {
		if strings.HasSuffix(job.JobID, ".0.0") {
			return errors.New("550 no such\nuser")
		}
		return jobs.ErrHeldBack
	})
	if _, err := d.later(t, func(o *stream.SweepOptions) {
		o.Drain = stream.NewDrain(d.store, sink, func(o *stream.DrainOptions) { o.MaxTries = 1 })
	}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// recordOf is the partition key of the table's only record, by a look ahead in
// time: it has a job that waits.
func (d *desk) recordOf(t *testing.T) string {
	t.Helper()
	rep, err := d.later(t).List(t.Context())
	if err != nil || len(rep.Entries) == 0 {
		t.Fatalf("got %+v, %v", rep, err)
	}
	return rep.Entries[0].PK
}

// later is a sweep in an hour.
func (d *desk) later(t *testing.T, optFns ...func(*stream.SweepOptions)) *stream.Sweep {
	t.Helper()
	client, err := dynamo.NewClient(unhurried)
	if err != nil {
		t.Fatal(err)
	}
	return stream.NewSweep(client, d.store, append(optFns, func(o *stream.SweepOptions) {
		o.PagesPerSecond, o.Now = 1000, func() time.Time { return time.Now().Add(time.Hour) }
	})...)
}

// A record is shown without what its client sent, unless that is asked for.
func TestStuckShow(t *testing.T) {
	d := newDesk(t)
	resumable := idem.New(d.store, func(o *idem.Options) { o.Namespace, o.Resumable = "rides", true })
	_, err := resumable.Do(t.Context(), idem.Request{Key: "k", Method: "POST", Path: "/rides", Route: "POST /rides", Body: []byte("secret body")},
		func(ctx context.Context) (idem.Response, error) {
			if _, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (string, error) {
				tx.Stage(idem.NewJob("mail", "secret address"))
				return "secret ride", nil
			}); err != nil {
				return idem.Response{}, err
			}
			_, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (string, error) { return "", errTimeout }, idem.NotIdempotent())
			return idem.Response{}, err
		})
	if err == nil {
		t.Fatal("answered")
	}
	pk := d.recordOf(t)
	out := d.ok(t, "show", pk)
	if strings.Contains(out, "secret") {
		t.Errorf("shows %s", out)
	}
	var got shown
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := []shownPhase{{Name: "ride_created"}, {Name: "charge_created", Unknown: true}}
	if diff := cmp.Diff(want, got.Phases); diff != "" || got.State != "stuck" || got.Keep != "open" || !got.HasRequest || got.PK != pk ||
		len(got.Jobs) != 1 || got.Jobs[0].Kind != "mail" || got.Route != "POST /rides" {
		t.Errorf("got %+v; phases (-want +got):\n%s", got, diff)
	}
	data := d.ok(t, "show", "-data", pk)
	for _, secret := range []string{"secret body", "secret address", "secret ride"} {
		if !strings.Contains(data, secret) {
			t.Errorf("%s is not in %s", secret, data)
		}
	}
	d.ok(t, "answer", "-yes", "-status", "409", "-body", `"given up"`, pk)
	if data := d.ok(t, "show", "-data", pk); !strings.Contains(data, "given up") || strings.Contains(data, "secret body") {
		t.Errorf("shows %s", data)
	}
}

func TestStuckMistakes(t *testing.T) {
	d := newDesk(t)
	d.fails(t, 2, "usage: samekey stuck list")
	d.fails(t, 2, "there is no command nonsense", "nonsense")
	d.fails(t, 2, "0 arguments", "retry")
	d.fails(t, 2, "2 arguments", "show", "a", "b")
	d.fails(t, 2, "1 arguments", "list", "a")
	d.fails(t, 2, "not defined", "list", "-nonsense")
	d.fails(t, 1, "not the partition key", "retry", "k")
	d.fails(t, 1, "not the partition key", "show", "v1##a#b#1")
	d.fails(t, 1, "there is no record", "answer", "-status", "200", "v1##nobody")
	d.fails(t, 1, "there is no record", "show", "v1##nobody")
	d.fails(t, 1, "not JSON", "retry", "-result", "ch_1", d.stuckPK(t))
	d.fails(t, 1, "not negative", "list", "-pages", "-1")
	d.env["IDEM_TABLE"] = "another"
	if code, _, stderr := call(t, d.env, "stuck", "list"); code != 1 || !strings.Contains(stderr, "ResourceNotFoundException") ||
		!strings.Contains(stderr, "the list is incomplete") || strings.Contains(stderr, "nothing waits") {
		t.Errorf("code %d, %q", code, stderr)
	}
	delete(d.env, "IDEM_TABLE")
	d.fails(t, 2, "which table", "list")
	if code, _, stderr := call(t, nil, "stuck", "-h"); code != 0 || !strings.Contains(stderr, "-not-made") {
		t.Errorf("code %d, %q", code, stderr)
	}
}

func (d *desk) stuckPK(t *testing.T) string {
	t.Helper()
	calls := 0
	if _, err := d.pay(t.Context(), "k", &calls); err == nil {
		t.Fatal("answered")
	}
	return d.entry(t).PK
}
