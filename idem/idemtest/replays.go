package idemtest

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/idem"
)

// Replays sends the request r twice, and returns the first answer. The test fails if the
// first request doesn't run the handler, if the second request runs the handler again, or
// if the second answer isn't a replay with the same status, body and stored headers.
//
//	idemtest.Replays(t, engine, buy, idem.Request{Key: "7f0c", Method: "POST", Path: "/orders"})
//
// lambdatest.Replays does the same for handlers of package lambda.
func Replays(t testing.TB, e *idem.Engine, handler func(context.Context) (idem.Response, error), r idem.Request) idem.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	runs := 0
	counted := func(ctx context.Context) (idem.Response, error) {
		runs++
		return handler(ctx)
	}
	first, err := e.Do(ctx, r, counted)
	if err != nil {
		t.Fatalf("the first request: %v", err)
	}
	if runs == 0 {
		t.Fatal("the first request was answered from a record: its key is not new")
	}
	runs = 0
	again, err := e.Do(ctx, r, counted)
	switch diff := diffAnswers(first.Response, again.Response); {
	case runs > 0:
		t.Errorf("the same request again ran the handler: its answer, %d, is not stored", first.Status)
	case err != nil:
		t.Errorf("the same request again: %v", err)
	case !again.Replayed:
		t.Error("the same request again is not answered from the record")
	case diff != "":
		t.Errorf("the same request again is answered otherwise (-first +again):\n%s", diff)
	}
	return first
}

// diffAnswers returns how two answers differ, or "" if they are the same. It ignores
// headers that the second answer lacks, since these headers aren't stored.
func diffAnswers(first, again idem.Response) string {
	first = first.Clone()
	for name := range first.Header {
		if again.Header[name] == nil {
			delete(first.Header, name)
		}
	}
	return cmp.Diff(first, again, cmpopts.EquateEmpty())
}
