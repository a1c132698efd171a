package dynamo_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
)

// The companions of a body belong to one try of one attempt: neither a worker that
// lost its lease, in a process that counts from the start too, nor the attempt's
// own next try can touch those of the finish that landed.
func TestCompanionsAreTheAttemptsOwn(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	another, err := dynamo.New(tab.client, tab.name)
	if err != nil {
		t.Fatal(err)
	}
	finish := func(t *testing.T, store *dynamo.Store, r *idem.Record, owner, body string) *idem.Record {
		t.Helper()
		prev := r.Clone()
		prev.Owner = owner
		next := prev.Clone()
		next.State, next.Ver, next.Response = idem.Done, prev.Ver+1, &idem.Response{Status: 200, Body: []byte(body)}
		held, err := store.Commit(t.Context(), idem.Commit{Prev: prev, Next: next})
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	for name, late := range map[string]struct {
		store *dynamo.Store
		owner string
	}{
		"a worker of another process": {another, "late"},
		"another try of the attempt":  {tab.store, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, err := dynamo.New(tab.client, tab.name)
			if err != nil {
				t.Fatal(err)
			}
			r, body := tab.held(t), randomText(30<<10)
			if held := finish(t, first, r, r.Owner, body); held != nil {
				t.Fatalf("refused with %+v", held)
			}
			owner, store := late.owner, late.store
			if owner == "" {
				owner, store = r.Owner, first
			}
			if held := finish(t, store, r, owner, randomText(30<<10)); held == nil {
				t.Error("the second finish landed")
			}
			now, err := first.Load(t.Context(), r.PK)
			if err == nil {
				err = first.LoadBody(t.Context(), now)
			}
			if err != nil || string(now.Response.Body) != body {
				t.Errorf("the body is not the one that was committed: %v", err)
			}
		})
	}
}

// Whoever reads a finished record finds its body, at any moment.
func TestBodyIsThereBeforeItsRecordSaysSo(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	finishes := 0
	tab.tr.Fault = func(op string, _ int) dynamotest.Fault {
		if op != "UpdateItem" {
			return nil
		}
		return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
			finishes++
			companions := 0
			for _, it := range tab.items(t) {
				if it["st"] == nil && it["b"] != nil {
					companions++
				}
			}
			if companions != 1 {
				t.Errorf("the finish is sent with %d companions written", companions)
			}
			return base.RoundTrip(req)
		}
	}
	if _, err := idem.New(tab.store).Do(t.Context(), post(newKey(), "{}"), created(randomText(30<<10))); err != nil || finishes != 1 {
		t.Errorf("%v after %d finishes", err, finishes)
	}
}

// A part of a body that could not be written fails the finish, which then is made
// again with all parts.
func TestCompanionRefusedOnceIsWrittenAgain(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	tab.tr.Fault = func(op string, n int) dynamotest.Fault {
		if op == "PutItem" && n == 2 { // the first is the claim
			return dynamotest.AnswerError(http.StatusBadRequest, "AccessDeniedException", "injected")
		}
		return nil
	}
	engine, req, body := idem.New(tab.store), post(newKey(), "{}"), randomText(20<<10)
	if res, err := engine.Do(t.Context(), req, created(body)); err != nil || string(res.Body) != body {
		t.Fatalf("got %d bytes, %v", len(res.Body), err)
	}
	if n := tab.tr.Calls()["PutItem"]; n != 3 {
		t.Errorf("%d puts, want the claim's and two tries of the body", n)
	}
	replays(t, engine, req, body)
}

// Nothing but its hash tells that a body which can't be compressed was altered.
func TestAlteredBodyDoesNotReplay(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	body := make([]byte, 9<<10)
	if _, err := rand.Read(body); err != nil {
		t.Fatal(err)
	}
	engine, req := idem.New(tab.store), post(newKey(), "{}")
	if _, err := engine.Do(t.Context(), req, created(string(body))); err != nil {
		t.Fatal(err)
	}
	for _, it := range tab.items(t) {
		if b, ok := it["b"].(*types.AttributeValueMemberB); ok && it["st"] == nil {
			b.Value[100] ^= 1
			tab.put(t, it)
		}
	}
	if _, err := engine.Do(t.Context(), req, neverRuns(t)); !errors.Is(err, idem.ErrNotKept) {
		t.Errorf("a retry got %v, want not kept", err)
	}
}
