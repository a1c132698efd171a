package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/internal/testkit/leaktest"
)

// desk holds a table, an application on the table, and an operator's environment.
type desk struct {
	client *dynamodb.Client
	store  *dynamo.Store
	engine *idem.Engine
	env    map[string]string
	keys   []string // derived keys that the provider got
}

// unhurried sets a client without timeouts, for a slow machine.
func unhurried(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient }

// newDesk sets variables of the process's environment, since the command's client reads them.
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
	table := "desk-" + rand.Text()
	if _, err := client.CreateTable(t.Context(), dynamo.CreateTableInput(table)); err != nil {
		t.Fatal(err)
	}
	if err := dynamodb.NewTableExistsWaiter(client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &table}, 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	s, err := dynamo.New(client, table)
	if err != nil {
		t.Fatal(err)
	}
	return &desk{
		client: client, store: s, env: map[string]string{"IDEM_TABLE": table, "IDEM_NAMESPACE": "rides", "USER": "jane"},
		engine: idem.New(s, callertest.Anybody, func(o *idem.Options) { o.Namespace = "rides" }),
	}
}

// ok runs a command that must succeed, and returns its output.
func (d *desk) ok(t *testing.T, args ...string) string {
	t.Helper()
	code, stdout, stderr := call(t, d.env, args...)
	if code != 0 {
		t.Fatalf("%v: code %d: %s", args, code, stderr)
	}
	return stdout
}

// fails checks a command's exit code and error.
func (d *desk) fails(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	got, stdout, stderr := call(t, d.env, args...)
	if got != code || !strings.Contains(stderr, want) || stdout != "" {
		t.Errorf("%v: code %d, %q, %q; want %d, %q", args, got, stdout, stderr, code, want)
	}
}

var errTimeout = errors.New("timeout")

const customersKey = "customers-key-8e03978e"

// contents are texts in a desk's records that commands print only with --data.
func contents() []string { return []string{"secret ride", "secret address", leaktest.Card} }

// request returns the customer's request.
func request() idem.Request {
	return idem.Request{
		Key: customersKey, Method: "POST", Path: "/rides", Route: "POST /rides", Body: []byte(`{"card":"` + leaktest.Card + `"}`),
		Identity: idem.Identity{Kind: "jwt", Subject: "jane"}, Handler: store.HandlerID{Function: "rides", Name: "create"},
	}
}

// pay writes a ride, stages a mail, and calls a provider that takes no
// keys. The first call has an unknown outcome.
func (d *desk) pay(ctx context.Context, calls *int) (idem.Result, error) {
	return d.engine.Do(ctx, request(), func(ctx context.Context) (idem.Response, error) {
		if _, err := idem.Atomic(ctx, "ride_created", func(_ context.Context, tx *idem.Tx) (string, error) {
			d.keys = append(d.keys, tx.Key("maps", "route"))
			tx.Stage(idem.NewJob("mail", "secret address"))
			return "secret ride", nil
		}); err != nil {
			return idem.Response{}, err
		}
		charge, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (string, error) {
			if *calls++; *calls == 1 {
				return "", errTimeout
			}
			return "ch_new", nil
		}, idem.NotIdempotent())
		return idem.Response{Status: 201, Body: []byte(charge)}, err
	})
}

// stuck makes a payment with an unknown outcome, and returns its record.
func (d *desk) stuck(t *testing.T) *store.Record {
	t.Helper()
	calls := 0
	if _, err := d.pay(t.Context(), &calls); err == nil {
		t.Fatal("answered")
	}
	return d.record(t)
}

// record returns the record of the customer's key.
func (d *desk) record(t *testing.T) *store.Record {
	t.Helper()
	pk, err := (records.Customer{Namespace: "rides", Key: customersKey, Scope: "jwt:jane"}).PK(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rec, err := d.store.Load(t.Context(), pk)
	if err != nil || rec == nil {
		t.Fatalf("%v, %v", rec, err)
	}
	return rec
}

// scrubs replace texts that differ from run to run.
var scrubs = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`v1#rides#[\w-]{43}`), "v1#rides#HASH"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\b[A-Z2-7]{26}\b`), "OPERATION"},
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "ENDPOINT"},
	{regexp.MustCompile(`"short": "[\w-]{8}"`), `"short": "SHORT"`},
	{regexp.MustCompile(`"record": "[\w-]{8}"`), `"record": "SHORT"`},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "DERIVED-KEY"},
	{regexp.MustCompile(`"took_ms": \d+`), `"took_ms": 1`},
	{regexp.MustCompile(`"(oldest_s|bytes_estimate)": \d+`), `"$1": 0`},
	{regexp.MustCompile(`about \d+ bytes`), "about N bytes"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|µs|s)\b`), "DURATION"},
	{regexp.MustCompile(` {2,}`), "  "},
}

func scrubbed(s string) string {
	for _, sc := range scrubs {
		s = sc.re.ReplaceAllString(s, sc.to)
	}
	return s
}
