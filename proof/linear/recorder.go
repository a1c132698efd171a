package linear

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/samekey/samekey/idem"
)

// Recorder notes what concurrent clients asked of one or more engines and what
// they were told. [Recorder.Check] then looks for an order of single requests
// that explains all of it (linearizability, key by key). The zero value is
// ready to use, by any number of goroutines. Engines that share a recorder
// share a namespace and have the default fingerprint; no key may expire while
// it is used.
type Recorder struct {
	// Lossy says that answers of the store may be lost: an attempt may take a key
	// without learning of it, until it is told of the attempt that took over from it.
	Lossy bool

	mu      sync.Mutex
	time    int64 // counts events: an order is all the check needs
	attempt int
	history map[string][]porcupine.Operation
	ticks   []porcupine.Operation
}

// forever is the end of what may still take effect at any time.
const forever = math.MaxInt64

// Do is [idem.Engine.Do], noted. What ran unprotected (Result.Passed) is left
// out.
func (r *Recorder) Do(ctx context.Context, e *idem.Engine, req idem.Request, fn func(context.Context) (idem.Response, error)) (idem.Result, error) {
	var entered, left int64
	var failed bool
	called, attempt := r.now(), r.newAttempt()
	ev := event{attempt: attempt, request: content(req)}
	key := fmt.Sprintf("%q %q", req.Scope, req.Key)
	back := false
	defer func() {
		if !back && entered != 0 { // fn panicked, and goes on to do so
			r.note(key, called, entered, ev.of(began))
			r.note(key, entered, forever, ev.of(endUnknown))
		}
	}()
	res, err := e.Do(ctx, req, func(ctx context.Context) (idem.Response, error) {
		entered = r.now()
		resp, err := fn(ctx)
		left, failed = r.now(), err != nil || resp.Status >= http.StatusBadRequest
		return resp, err
	})
	back = true
	returned := r.now()
	if res.Passed {
		return res, err
	}
	if left == 0 {
		r.note(key, called, returned, ev.refused(res, err))
		return res, err
	}
	r.note(key, called, entered, ev.of(began))
	end := ev.ended(res, err)
	r.note(key, left, returned, end)
	if end.overtaken && failed {
		// Perhaps by somebody who found the key given back, by a release whose
		// answer was lost.
		r.note(key, left, returned, ev.of(maybeReleased))
	}
	return res, err
}

// EndLeases runs advance, which moves the clocks so far that every lease held
// at the moment is over, and notes that.
func (r *Recorder) EndLeases(advance func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.time++
	called := r.time
	advance()
	r.time++
	r.ticks = append(r.ticks, porcupine.Operation{Call: called, Return: r.time, Input: event{kind: leasesOver}})
}

// enough is the time for a key's history, on a busy machine too.
const enough = 10 * time.Minute

// Check fails t unless the history is linearizable. It must not be called
// while Do runs.
func (r *Recorder) Check(t testing.TB) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	model := keyModel()
	for key, history := range r.history {
		history = slices.Concat(r.unseen(r.late(history)), r.ticks)
		switch porcupine.CheckOperationsTimeout(model, history, enough) {
		case porcupine.Ok:
		case porcupine.Illegal:
			t.Errorf("key %s: no order of single requests explains this history:\n%s", key, describe(history))
		case porcupine.Unknown:
			t.Errorf("key %s: %d operations are too many to check within %v", key, len(history), enough)
		}
	}
}

// late returns a history whose events know whether leases ended while they were under
// way. An attempt computes its lease before its claim is sent, so such a claim may be
// applied with a lease that is over.
func (r *Recorder) late(history []porcupine.Operation) []porcupine.Operation {
	history = slices.Clone(history)
	for i, op := range history {
		ev, _ := op.Input.(event)
		ev.late = slices.ContainsFunc(r.ticks, func(tick porcupine.Operation) bool { return op.Call < tick.Call && tick.Call < op.Return })
		history[i].Input = ev
	}
	return history
}

// unseen returns a history in which attempts that were told of another may have held
// the key before, if answers may be lost: the lease that they didn't know of is over.
func (r *Recorder) unseen(history []porcupine.Operation) []porcupine.Operation {
	if !r.Lossy {
		return history
	}
	for _, op := range history {
		ev, _ := op.Input.(event)
		told := ev.kind == inFlight || ev.kind == replayed || ev.kind == notKept
		if told && ev.late && !ev.overtaken { // the handler of an overtaken attempt has run
			op.Input = ev.of(tookUnseen)
			history = append(history, op)
		}
	}
	return history
}

func (ev event) of(k kind) event {
	ev.kind = k
	return ev
}

// refused is the event of a request whose handler did not run.
func (ev event) refused(res idem.Result, err error) event {
	switch {
	case err == nil && res.Replayed:
		ev.kind, ev.answer = replayed, answer(res.Response)
	case errors.Is(err, idem.ErrInFlight):
		ev.kind = inFlight
	case errors.Is(err, idem.ErrMismatch):
		ev.kind = mismatch
	case errors.Is(err, idem.ErrNotKept):
		ev.kind = notKept
	default:
		ev.kind = beginUnknown
	}
	return ev
}

// ended is the event of a request whose handler ran, after it ran.
func (ev event) ended(res idem.Result, err error) event {
	_, own := errors.AsType[*idem.Error](err)
	ev.overtaken = res.Replayed || errors.Is(err, idem.ErrLeaseLost)
	ev.answer = answer(res.Response)
	switch {
	case err == nil && res.Replayed:
		ev.kind = replayed
	case err == nil && !res.Expires.IsZero(): // the lifetime of what was stored
		ev.kind = stored
	case errors.Is(err, idem.ErrLeaseLost) && errors.Is(err, idem.ErrInFlight):
		ev.kind = inFlight
	case errors.Is(err, idem.ErrLeaseLost):
		ev.kind = leaseLost
	case err != nil && !own:
		ev.kind = released
	default:
		ev.kind = endUnknown
	}
	return ev
}

// note records an event. One whose outcome is unknown never returned: it may
// take effect at any later time.
func (r *Recorder) note(key string, called, returned int64, ev event) {
	if ev.kind == beginUnknown || ev.kind == endUnknown {
		returned = forever
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.history == nil {
		r.history = make(map[string][]porcupine.Operation)
	}
	r.history[key] = append(r.history[key], porcupine.Operation{ClientId: ev.attempt, Call: called, Return: returned, Input: ev})
}

func (r *Recorder) now() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.time++
	return r.time
}

func (r *Recorder) newAttempt() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempt++
	return r.attempt
}

// content is what the default fingerprint takes.
func content(r idem.Request) string {
	return fmt.Sprintf("%s %s?%s %q", r.Method, r.Path, r.Query, r.Body)
}

func answer(r idem.Response) string { return fmt.Sprintf("%d %q", r.Status, r.Body) }

func describe(history []porcupine.Operation) string {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var b strings.Builder
	for _, op := range history {
		end := "never"
		if op.Return != forever {
			end = strconv.FormatInt(op.Return, 10)
		}
		fmt.Fprintf(&b, "  %6d to %6s  %v\n", op.Call, end, op.Input)
	}
	return b.String()
}
