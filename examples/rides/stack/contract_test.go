//go:build linux

package stack_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// short are the waits of these tests. The functions have more time than they need, also on a
// busy machine.
var short = []string{
	"LOCAL_FUNCTION_TIMEOUT=10s", "LOCAL_LEASE_MARGIN=500ms", "LOCAL_GRACE=500ms",
	"LOCAL_STREAM_WINDOW=100ms", "LOCAL_SWEEP_EVERY=1h",
}

type (
	function struct {
		Name        string
		PID         int
		Invocations int
	}
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

// make local starts all of it: everything that docs/use/local.md and the tools
// around it rely on. The subtests follow one another on one stack.
func TestMakeLocal(t *testing.T) {
	ports := freePorts(t, 3)
	s := start(t, append(short, "LOCAL_API_PORT="+ports[0], "LOCAL_WORLD_PORT="+ports[1], "LOCAL_CONTROL_PORT="+ports[2])...)

	t.Run("the line names the ports that were asked for", func(t *testing.T) {
		want := ready{
			Ready: true, API: "http://127.0.0.1:" + ports[0], World: "http://127.0.0.1:" + ports[1],
			Control: "http://127.0.0.1:" + ports[2], DynamoDB: s.at.DynamoDB, Table: "local-Samekey-Table",
		}
		if diff := cmp.Diff(want, s.at); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		for _, key := range []string{"ready", "api", "world", "control", "dynamodb", "table"} {
			if _, there := s.line[key]; !there {
				t.Errorf("it has no %s: %v", key, s.line)
			}
		}
		db := &dynamotest.DB{Endpoint: s.at.DynamoDB}
		defer db.Close()
		if _, err := db.Client().DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &s.at.Table}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a ride is charged, mailed and replayed", s.testRide)
	t.Run("the completer ends what a killed process left", s.testKilled)
	t.Run("nothing was given up", func(t *testing.T) {
		if got := strings.TrimSpace(call(t, http.MethodGet, s.at.Control+"/failed", nil).body); got != "[]" {
			t.Errorf("failed: %s", got)
		}
	})
	s.end(t, syscall.SIGINT)
}

// A database that is there is used, its streams by an endpoint of their own, and
// SIGTERM ends the rest.
func TestMakeLocalWithADatabase(t *testing.T) {
	db := dynamotest.Start(t)
	target, err := url.Parse(db.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	// Two doors to the same database, to see who knocks where.
	var calls [2]struct{ tables, streams atomic.Int64 }
	var doors [2]string
	for i := range doors {
		proxy := httputil.NewSingleHostReverseProxy(target)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "DynamoDBStreams_") {
				calls[i].streams.Add(1)
			} else {
				calls[i].tables.Add(1)
			}
			proxy.ServeHTTP(w, r)
		}))
		defer srv.Close()
		doors[i] = srv.URL
	}
	s := start(t, append(append(short, db.Env()...), "AWS_REGION=us-east-1", "LOCAL_SWEEP_EVERY=300ms",
		"LOCAL_API_PORT=0", "LOCAL_WORLD_PORT=0", "LOCAL_CONTROL_PORT=0", "LOCALFLAGS=-stack-name own",
		"AWS_ENDPOINT_URL_DYNAMODB="+doors[0], "AWS_ENDPOINT_URL_DYNAMODB_STREAMS="+doors[1])...)
	if s.at.DynamoDB != doors[0] || s.at.Table != "own-Samekey-Table" {
		t.Errorf("line is %v", s.line)
	}
	created := s.booked(t, "omar@example.com", "own-database")
	localtest.Eventually(t, "the receipt is mailed", func() bool { return s.mails(t, rideID(created)) == 1 })
	if n := count(t, db, s.at.Table); n < 2 { // of the ride, and of its receipt
		t.Errorf("the database has %d records", n)
	}
	for i, c := range [2]struct{ tables, streams bool }{{true, false}, {false, true}} {
		if tables, streams := calls[i].tables.Load(), calls[i].streams.Load(); tables > 0 != c.tables || streams > 0 != c.streams {
			t.Errorf("door %d: %d calls for tables, %d for streams", i, tables, streams)
		}
	}
	localtest.Eventually(t, "the sweep runs by itself", func() bool { return s.sweeps(t) > 1 })
	s.end(t, syscall.SIGTERM)
	if n := count(t, db, s.at.Table); n < 2 {
		t.Errorf("afterwards the database has %d records", n)
	}
}

func count(t *testing.T, db *dynamotest.DB, table string) int32 {
	t.Helper()
	out, err := db.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	return out.Count
}
