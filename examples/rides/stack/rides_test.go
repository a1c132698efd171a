//go:build linux

package stack_test

import (
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/testkit/localtest"
)

// book asks for a ride once.
func (s *stack) book(t *testing.T, user, key string) answer {
	t.Helper()
	in := map[string]float64{"origin_lat": 37.7, "origin_lon": -122.4, "target_lat": 37.8, "target_lon": -122.3}
	return call(t, http.MethodPost, s.at.API+"/rides", in, "Authorization", "Bearer "+user, "Idempotency-Key", key)
}

// booked asks for a ride until it is there, as a client does: on a busy machine the first
// process may need more than its time to start.
func (s *stack) booked(t *testing.T, user, key string) (a answer) {
	t.Helper()
	localtest.Eventually(t, "the ride is booked", func() bool {
		a = s.book(t, user, key)
		if a.status < http.StatusInternalServerError && a.status != http.StatusConflict && a.status != http.StatusCreated {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.status == http.StatusCreated
	})
	return a
}

// rideID is "" if an answer isn't a ride's.
func rideID(a answer) string {
	id, _ := strings.CutPrefix(a.header.Get("Location"), "/rides/")
	return id
}

func (s *stack) function(t *testing.T, name string) function {
	t.Helper()
	for _, f := range get[[]function](t, s.at.Control+"/functions") {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("there is no function %s", name)
	return function{}
}

func (s *stack) charges(t *testing.T) []charge {
	t.Helper()
	return get[[]charge](t, s.at.World+"/v1/charges")
}

func (s *stack) receipts(t *testing.T) []mail {
	t.Helper()
	return get[[]mail](t, s.at.World+"/v1/mails")
}

// mails counts the mails of a ride, each as often as it was sent.
func (s *stack) mails(t *testing.T, ride string) (n int) {
	t.Helper()
	for _, m := range s.receipts(t) {
		if m.RideID == ride && m.JobID != "" {
			n += m.Calls
		}
	}
	return n
}

func (s *stack) mode(t *testing.T, mode map[string]any) {
	t.Helper()
	if a := call(t, http.MethodPut, s.at.World+"/v1/mode", mode); a.status != http.StatusOK {
		t.Fatalf("mode: %d %s", a.status, a.body)
	}
}

func (s *stack) testRide(t *testing.T) {
	first := s.booked(t, "jane@example.com", "first-ride")
	if rideID(first) == "" {
		t.Fatalf("%d %s", first.status, first.body)
	}
	again := s.book(t, "jane@example.com", "first-ride")
	if again.status != http.StatusCreated || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %d %v %s", again.status, again.header, again.body)
	}
	show := call(t, http.MethodGet, s.at.API+"/rides/"+rideID(first), nil, "Authorization", "Bearer jane@example.com")
	if show.status != http.StatusOK || !strings.Contains(show.body, rideID(first)) {
		t.Errorf("show: %d %s", show.status, show.body)
	}
	localtest.Eventually(t, "the receipt is mailed", func() bool { return s.mails(t, rideID(first)) == 1 })
	if c := s.charges(t); len(c) != 1 || c[0].Amount != 2000 || c[0].Calls != 1 || c[0].Key == "" || c[0].ID == "" || c[0].Customer == "" {
		t.Errorf("charges are %+v", c)
	}
	for _, name := range []string{"Rides", "Authorizer", "Samekey.Worker", "Receipts"} {
		if f := s.function(t, name); f.PID == 0 || f.Invocations == 0 || syscall.Kill(f.PID, 0) != nil {
			t.Errorf("%+v", f)
		}
	}
}

func (s *stack) testKilled(t *testing.T) {
	charged, mailed := len(s.charges(t)), len(s.receipts(t))
	// The provider takes the money at once, and says so after the process is dead.
	s.mode(t, map[string]any{"delay_ms": 60_000, "times": 1})
	var cut answer
	done := make(chan struct{})
	go func() {
		defer close(done)
		cut = s.book(t, "jane@example.com", "killed-ride")
	}()
	localtest.Eventually(t, "the ride is charged", func() bool { return len(s.charges(t)) == charged+1 })
	victim := s.function(t, "Rides").PID
	if victim == 0 {
		t.Fatal("there is no process: it was killed after 10 s")
	}
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-done
	s.mode(t, map[string]any{}) // the mail service has been slow as well
	if cut.status != http.StatusInternalServerError {
		t.Errorf("the client got %d %s", cut.status, cut.body)
	}
	// Nobody asks again: it is the stream, the queue and the completer.
	localtest.Eventually(t, "a receipt is mailed", func() bool { return len(s.receipts(t)) == mailed+1 })
	final := s.book(t, "jane@example.com", "killed-ride")
	if final.status != http.StatusCreated || final.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the client gets %d %v %s", final.status, final.header, final.body)
	}
	if n := s.mails(t, rideID(final)); n != 1 {
		t.Errorf("%d receipts", n)
	}
	if c := s.charges(t); len(c) != charged+1 || c[charged].Calls < 2 {
		t.Errorf("charges are %+v, want one more, asked for again", c)
	}
	if now := s.function(t, "Rides").PID; now == 0 || now == victim {
		t.Errorf("process %d follows %d", now, victim)
	}
}

// sweeps is how often the sweep has run: a run stores its place at its begin and its end.
func (s *stack) sweeps(t *testing.T) int {
	t.Helper()
	db := &dynamotest.DB{Endpoint: s.at.DynamoDB}
	defer db.Close()
	out, err := db.Client().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: &s.at.Table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "samekey#sweep#"}}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	ver, ok := out.Item["ver"].(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(ver.Value)
	if err != nil {
		t.Fatal(err)
	}
	return n / 2
}
