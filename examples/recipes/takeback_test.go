package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

// travel is a provider that is full for the names in full.
func travel(w *idemtest.World, full string) Travel {
	return Travel{
		Reserve: func(ctx context.Context, key, what, name string) (string, error) {
			if name == full {
				return "", nil
			}
			e, err := w.Call(ctx, "reserve "+what, key, name)
			return e.ID, err
		},
		Cancel: func(ctx context.Context, key, what, id string) error {
			_, err := w.Call(ctx, "cancel "+what, key, id)
			return err
		},
	}
}

// What was reserved is taken back by one job, once, and nothing else is.
func TestATripIsTakenBackOnce(t *testing.T) {
	t.Parallel()
	for full, want := range map[string]struct {
		status  int
		effects []string
		job     Cancellation
	}{
		"":     {201, []string{"reserve flight", "reserve hotel"}, Cancellation{}},
		"ritz": {409, []string{"reserve flight"}, Cancellation{"flight", "1"}},
		"LH1":  {409, nil, Cancellation{}},
	} {
		t.Run("full: "+full, func(t *testing.T) {
			t.Parallel()
			start := func(w *idemtest.World) *lambda.Handler[request, response] {
				return lambda.Wrap(w.Engine(), lambda.HTTPAPI, travel(w, full).Book, func(o *lambda.HandlerOptions) { o.Name = "book" })
			}
			lambdatest.CrashEverywhere(t, start, post("/trips", `{"flight":"LH1","hotel":"ritz"}`), func(t testing.TB, w *idemtest.World, re response) {
				jobs := idemtest.AllStaged[Cancellation](t, w, "cancel")
				var names []string
				for _, e := range w.Provider.Effects() {
					names = append(names, e.Path)
				}
				if re.StatusCode != want.status || !cmp.Equal(names, want.effects) {
					t.Errorf("%d, effects %q, want %d, %q", re.StatusCode, names, want.status, want.effects)
				}
				if none := want.job == (Cancellation{}); none != (len(jobs) == 0) || !none && (len(jobs) != 1 || jobs[0] != want.job) {
					t.Errorf("staged %+v, want %+v", jobs, want.job)
				}
			})
		})
	}

	id := "job-1"
	job := events.SQSEvent{Records: []events.SQSMessage{{
		MessageId: "1", Body: `{"of":"flight","id":"1"}`, EventSource: "aws:sqs", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:cancellations",
		MessageAttributes: map[string]events.SQSMessageAttribute{lambda.KeyAttribute: {StringValue: &id, DataType: "String"}},
	}}}
	lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.EachHandler[events.SQSEvent, events.SQSMessage, events.SQSEventResponse] {
		return lambda.WrapEach(w.Engine(), lambda.SQS, travel(w, "").OnCancellation)
	}, job, func(t testing.TB, w *idemtest.World, _ events.SQSEventResponse) {
		if got := w.Provider.Effects("cancel flight"); len(got) != 1 || string(got[0].Body) != `"1"` {
			t.Errorf("cancelled %+v", got)
		}
	})
}

// Each element of a list is done once and answered for itself, whichever list it comes
// in: a list costs two calls of the store for each new element, three for one that has
// failed, and one for one that was done.
func TestEachElementIsPaidOnce(t *testing.T) {
	t.Parallel()
	store := idemtest.Watch(new(idem.MemoryStore))
	paid, down := map[string]int{}, true
	b := Bulk{idem.New(store), func(_ context.Context, p Payment) (idem.Response, error) {
		switch {
		case p.Amount > 100:
			return idem.Response{Status: http.StatusPaymentRequired, Body: []byte(`"declined"`)}, nil
		case p.Key == "c" && down:
			return idem.Response{}, errors.New("the provider is down")
		}
		paid[p.Key]++
		return idem.Response{Status: http.StatusCreated, Body: []byte(`"ok"`)}, nil
	}}
	ok, declined := json.RawMessage(`"ok"`), json.RawMessage(`"declined"`)
	for _, tt := range []struct {
		name  string
		list  []Payment
		want  []Answer
		calls int
	}{
		{
			"partly done",
			[]Payment{{"a", 5}, {"b", 500}, {"c", 7}},
			[]Answer{{"a", 201, ok}, {"b", 402, declined}, {"c", 503, nil}},
			6,
		},
		{
			"the same list again",
			[]Payment{{"a", 5}, {"b", 500}, {"c", 7}},
			[]Answer{{"a", 201, ok}, {"b", 402, declined}, {"c", 201, ok}},
			5,
		},
		{"in another list", []Payment{{"c", 7}, {"c", 7}, {"d", 1}}, []Answer{{"c", 201, ok}, {"c", 201, ok}, {"d", 201, ok}}, 4},
		{"another amount, no key", []Payment{{"a", 6}, {"", 1}}, []Answer{{"a", 422, nil}, {"", 400, nil}}, 1},
	} {
		before := store.Calls()
		got, err := b.PayAll(t.Context(), "jane", tt.list)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", tt.name, err, diff)
		}
		if n := store.Calls() - before; n != tt.calls {
			t.Errorf("%s: %d calls, want %d", tt.name, n, tt.calls)
		}
		down = false
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "c": 1, "d": 1}, paid); diff != "" {
		t.Errorf("paid (-want +got):\n%s", diff)
	}
}
