package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

// What becomes of an event whose key function finds none is the engine's
// Options.Key to say, as it is over HTTP. A key function that fails, or panics over a
// record, has not found that there is none: that is refused in every mode.
func TestDirectKeyModes(t *testing.T) {
	t.Parallel()
	key := func(o order) (string, error) {
		if o.Tenant != "" {
			return "", errBad
		}
		return o.ID, nil
	}
	none, failing, notASCII, keyed := order{Amount: 20}, order{Tenant: "t"}, order{ID: "ö"}, order{ID: "o-1"}
	for name, tc := range map[string]struct {
		mode    idem.KeyMode
		in      order
		refused error
		runs    int // of two invocations
		records int
	}{
		"required, none":     {idem.KeyRequired, none, idem.ErrKeyMissing, 0, 0},
		"required, fails":    {idem.KeyRequired, failing, errBad, 0, 0},
		"required, a key":    {idem.KeyRequired, keyed, nil, 1, 1},
		"optional, none":     {idem.KeyOptional, none, nil, 2, 0},
		"optional, fails":    {idem.KeyOptional, failing, errBad, 0, 0},
		"optional, no ASCII": {idem.KeyOptional, notASCII, idem.ErrKeyInvalid, 0, 0},
		"optional, a key":    {idem.KeyOptional, keyed, nil, 1, 1},
		"generate, none":     {idem.KeyGenerate, none, nil, 2, 2},
		"generate, fails":    {idem.KeyGenerate, failing, errBad, 0, 0},
		"generate, no ASCII": {idem.KeyGenerate, notASCII, idem.ErrKeyInvalid, 0, 0},
		"generate, a key":    {idem.KeyGenerate, keyed, nil, 1, 1},
		"observe, none":      {observing, none, nil, 2, 0},
		"observe, fails":     {observing, failing, nil, 2, 0},
	} {
		for _, door := range []string{"Handle", "Invoke"} {
			t.Run(name+", "+door, func(t *testing.T) {
				t.Parallel()
				store := &idem.MemoryStore{}
				var log bytes.Buffer
				var refused []error
				e := idem.New(store, callertest.Anybody, func(o *idem.Options) {
					o.Logger = slog.New(slog.NewTextHandler(&log, nil))
					byMode(tc.mode)(o)
					o.Hooks.Refused = func(_ context.Context, ev idem.Event) { refused = append(refused, ev.Err) }
				})
				runs := 0
				h := lambda.Wrap(e, lambda.Direct[order, receipt](key), func(_ context.Context, o order) (receipt, error) {
					runs++
					return receipt{Order: o.ID, Run: runs}, nil
				})
				for i := range 2 {
					var re receipt
					var err error
					if payload, _ := json.Marshal(tc.in); door == "Handle" {
						re, err = h.Handle(t.Context(), tc.in)
					} else {
						var out []byte
						if out, err = h.Invoke(t.Context(), payload); err == nil {
							err = json.Unmarshal(out, &re)
						}
					}
					if want := min(i+1, tc.runs); re.Run != want {
						t.Errorf("invocation %d: got %+v, %v, want run %d", i+1, re, err, want)
					}
					if tc.refused == nil && err != nil || door == "Handle" && !errors.Is(err, tc.refused) || tc.refused != nil && err == nil {
						t.Errorf("invocation %d: got %v, want %v", i+1, err, tc.refused)
					}
				}
				if n := len(store.Records()); runs != tc.runs || n != tc.records {
					t.Errorf("%d runs and %d records, want %d and %d", runs, n, tc.runs, tc.records)
				}
				if made := strings.Contains(log.String(), "without an idempotency key"); made != (name == "generate, none") {
					t.Errorf("a key was made: %t; %s", made, &log)
				}
				if told := len(refused) == 2; told != (tc.refused != nil) {
					t.Errorf("Hooks.Refused was told %v", refused)
				}
			})
		}
	}
}

// A generated key makes an operation, so that handlers with phases run. A handler
// inside of an operation has no other one without a key of its own: its phases
// commit with those around it, once for all.
func TestGeneratedKeyOfANestedHandler(t *testing.T) {
	t.Parallel()
	store := process{&idem.MemoryStore{}}
	e := func() *idem.Engine {
		return idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyGenerate })
	}
	charge := func(ctx context.Context, o order) (receipt, error) {
		n, err := idem.Foreign(ctx, "charge", func(_ context.Context, tx *idem.Tx) (int, error) { return len(tx.Key("payments")), nil })
		return receipt{Order: o.ID, Run: n}, err
	}
	inner := lambda.Wrap(e(), lambda.Direct[order, receipt](orderID), charge)
	outer := lambda.Wrap(e(), lambda.Direct[order, receipt](orderID), inner.Handle)
	if re, err := outer.Handle(t.Context(), order{}); re.Run == 0 || err != nil {
		t.Errorf("got %+v, %v", re, err)
	}
	records := slices.Collect(maps.Values(store.Records()))
	if len(records) != 1 || len(records[0].Phases) != 1 {
		t.Errorf("the records are %+v, want one with the phase", records)
	}
}

// The same over HTTP.
func TestGeneratedKeyOfANestedRequest(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		store := &idem.MemoryStore{}
		e := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyGenerate })
		h, runs := counted(created)
		inner := idem.Request{Method: "POST", Path: "/inner"}
		a := s.send(t, s.wrap(e, func(ctx context.Context, body []byte) (idem.Response, error) {
			res, err := e.Serve(ctx, inner, func(ctx context.Context) (idem.Response, error) { return h(ctx, body) })
			return res.Response, err
		}), withoutKey())
		a.accepted(t, 201, createdBody, false)
		ran(t, runs, 1)
		if n := len(store.Records()); n != 1 {
			t.Errorf("%d records, want one for both", n)
		}
	})
}

// A source brings a record again by itself. KeyOptional does it each time; a key
// that is made up for one delivery would be another for the next one, so
// KeyGenerate refuses as KeyRequired does.
func TestEachKeyModes(t *testing.T) {
	t.Parallel()
	byAttribute := func(m events.SQSMessage) (string, error) {
		if m.Body == "bad" {
			return "", errBad
		}
		if m.Body == "panic" {
			panic(errBad)
		}
		return strings.TrimPrefix(m.Body, "none"), nil
	}
	none, failing, panicking := message("1", "none"), message("2", "bad"), message("3", "panic")
	for name, tc := range map[string]struct {
		mode idem.KeyMode
		m    events.SQSMessage
		want error // nil: each delivery runs the handler
	}{
		"required, none":   {idem.KeyRequired, none, idem.ErrKeyMissing},
		"required, fails":  {idem.KeyRequired, failing, errBad},
		"optional, none":   {idem.KeyOptional, none, nil},
		"optional, fails":  {idem.KeyOptional, failing, errBad},
		"optional, panics": {idem.KeyOptional, panicking, errBad},
		"generate, none":   {idem.KeyGenerate, none, idem.ErrKeyMissing},
		"generate, fails":  {idem.KeyGenerate, failing, errBad},
		"generate, panics": {idem.KeyGenerate, panicking, errBad},
		"observe, none":    {observing, none, nil},
		"observe, fails":   {observing, failing, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &idem.MemoryStore{}
			w := &worker{}
			h := lambda.WrapEach(idem.New(store, callertest.Anybody, byMode(tc.mode)), quiet(lambda.SQS.WithKey(byAttribute)), w.message)
			for range 2 {
				_, err := h.Handle(t.Context(), batch(tc.m))
				if !errors.Is(err, tc.want) {
					t.Errorf("got %v, want %v", err, tc.want)
				}
			}
			if tc.want == nil {
				w.ran(t, tc.m.MessageId, tc.m.MessageId)
			} else {
				w.ran(t)
			}
			if n := len(store.Records()); n != 0 {
				t.Errorf("%d records", n)
			}
		})
	}
}

// Records without a key are not one another's: they don't wait for each other.
func TestEachWithoutKeyAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := lambda.SQS.WithKey(func(events.SQSMessage) (string, error) { return "", nil })
		b.Concurrency = 2
		var both sync.WaitGroup
		both.Add(b.Concurrency)
		h := lambda.WrapEach(idem.New(&idem.MemoryStore{}, callertest.Anybody, func(o *idem.Options) { o.Key = idem.KeyOptional }), b,
			func(context.Context, events.SQSMessage) error {
				both.Done()
				both.Wait() // for ever, one after the other
				return nil
			})
		re, err := h.Handle(t.Context(), batch(message("1", ""), message("2", "")))
		reported(t, re, err)
	})
}

// observing stands for ModeObserve in the tables of key modes.
const observing idem.KeyMode = -1

func byMode(m idem.KeyMode) func(*idem.Options) {
	return func(o *idem.Options) {
		if m == observing {
			o.Mode = idem.ModeObserve
		} else {
			o.Key = m
		}
	}
}
