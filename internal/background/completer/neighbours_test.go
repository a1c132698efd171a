package completer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/envelope"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/ticketqueue"
)

// world is a function, and the table and the queue of its operations.
type world struct {
	*records
	queue ticketqueue.Queue
	fate  func(r *store.Record) (answer envelope.Kind, err error) // "": a crash

	done map[string]time.Time
}

// Invoke implements completer.FunctionAPI: the function takes an operation over, and answers.
func (w *world) Invoke(_ context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	ticket, _, _ := envelope.ParseTicket(in.Payload)
	r := w.all[ticket.PK]
	answer, err := w.fate(r)
	if err != nil {
		return nil, err
	}
	switch r.Tries, r.Ver, r.Run = r.Tries+1, r.Ver+1, time.Now(); {
	case r.Tries > defaults.MaxTries:
		r.State, answer = store.Stuck, envelope.Stuck
	case answer == envelope.Done:
		r.State, w.done[r.ID] = store.Done, time.Now()
	case answer == "":
		crashed := "Unhandled"
		r.Lease = time.Now().Add(30 * time.Second)
		return &awslambda.InvokeOutput{FunctionError: &crashed}, nil
	}
	return &awslambda.InvokeOutput{Payload: envelope.EncodeOutcome(envelope.Outcome{Kind: answer})}, nil
}

// begins puts the ticket of an operation that died just now into the queue.
func (w *world) begins(t *testing.T, queue *completer.Queue, caller, id string) {
	t.Helper()
	r := abandoned(id).all["v1##"+id]
	r.Run, r.Scope = time.Now(), caller
	w.all[r.PK] = r
	if err := errors.Join(queue.Put(t.Context(), []jobs.Ticket{state.TicketFor(r).From(time.Now().Add(state.DefaultGrace))})...); err != nil {
		t.Fatal(err)
	}
}

// However many operations of a caller fail, whether by an answer or by a crash, another
// caller's is completed about as soon as without them. A function that is throttled for
// hours completes each operation afterwards: no ticket is dropped.
func TestOperationsDontStopEachOther(t *testing.T) {
	t.Parallel()
	failed := func(r *store.Record) (envelope.Kind, error) {
		if r.Scope == "bad" {
			return envelope.Failed, nil
		}
		return envelope.Done, nil
	}
	crashed := func(r *store.Record) (envelope.Kind, error) {
		if r.Scope == "bad" {
			return "", nil
		}
		return envelope.Done, nil
	}
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of synctest
	throttled := func(*store.Record) (envelope.Kind, error) {
		if time.Since(began) < 5*time.Hour {
			return "", &types.TooManyRequestsException{}
		}
		return envelope.Done, nil
	}
	for name, tt := range map[string]struct {
		bad    int
		fate   func(*store.Record) (envelope.Kind, error)
		within time.Duration // is the good one completed
		all    time.Duration // have their outcome
	}{
		"300 fail":          {300, failed, 6 * time.Minute, 10 * time.Hour},
		"100 crash":         {100, crashed, 8 * time.Minute, 24 * time.Hour},
		"300 are throttled": {300, throttled, 5*time.Hour + 10*time.Minute, 5*time.Hour + 10*time.Minute},
	} {
		virtual(t, name, func(t *testing.T) {
			w := &world{records: abandoned(), fate: tt.fate, done: make(map[string]time.Time)}
			queue := completer.NewQueue(&w.queue, "url")
			h := completer.New(w, queue, completer.Invoke(w, "f"), func(o *completer.Options) { o.Logger = slog.New(slog.DiscardHandler) })
			for i := range tt.bad {
				w.begins(t, queue, "bad", fmt.Sprint("bad", i))
			}
			w.begins(t, queue, "good", "good")
			for w.queue.Waiting() > 0 && time.Since(began) < tt.all {
				if err := w.queue.Deliver(func(ev events.SQSEvent) ([]byte, error) {
					re, err := h.Handle(t.Context(), ev)
					if err != nil {
						return nil, err
					}
					return json.Marshal(re)
				}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) //nolint:forbidigo // virtual
			}
			if took := w.done["good"].Sub(began); took > tt.within || took < 0 {
				t.Errorf("the good one was completed after %v, want at most %v", took, tt.within)
			}
			for id, r := range w.all {
				if r.State == store.Open {
					t.Errorf("%s is open after %v, tried %d times", id, tt.all, r.Tries)
				}
			}
		})
	}
}
