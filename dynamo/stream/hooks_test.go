package stream_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

func TestJoinCallsEachHookOfAll(t *testing.T) {
	t.Parallel()
	counting := func(n *int) stream.Hooks {
		var h stream.Hooks
		v := reflect.ValueOf(&h).Elem()
		for _, field := range v.Fields() {
			field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value {
				*n++
				return nil
			}))
		}
		return h
	}
	var first, second int
	joined := reflect.ValueOf(stream.Join(counting(&first), stream.Hooks{}, counting(&second)))
	none := reflect.ValueOf(stream.Join(stream.Hooks{}, stream.Hooks{}))
	for i := range joined.NumField() {
		hook, name := joined.Field(i), joined.Type().Field(i).Name
		args := []reflect.Value{reflect.ValueOf(t.Context())}
		for n := 1; n < hook.Type().NumIn(); n++ {
			args = append(args, reflect.Zero(hook.Type().In(n)))
		}
		if hook.Call(args); first != i+1 || second != i+1 {
			t.Fatalf("after %s the hooks were called %d and %d times, want %d", name, first, second, i+1)
		}
		if !none.Field(i).IsNil() {
			t.Errorf("%s of no hooks is not nil", name)
		}
	}
}

// Each run tells what it has found: how old the oldest open operation is, also one in
// flight, but not one whose key was freed; and how much of the table the pass has seen.
func TestSweptTellsEachRun(t *testing.T) {
	t.Parallel()
	tab, clock := newTable(t), idemtest.NewClock()
	at := func(o *idem.Options) { o.Now = clock.Now }
	var told []*stream.Report
	var failed []error
	run := func(optFns ...func(*stream.SweepOptions)) *stream.Report {
		t.Helper()
		sweep := tab.sweep(append(optFns, func(o *stream.SweepOptions) {
			o.Now, o.Segments = clock.Now, 4
			o.Hooks.Swept = func(_ context.Context, r *stream.Report, err error) {
				told, failed = append(told, r), append(failed, err)
			}
		})...)
		before := len(told)
		rep, err := sweep.Run(t.Context())
		if len(told) != before+1 || told[before] != rep || !errors.Is(failed[before], err) {
			t.Fatalf("told %+v %v, returned %+v %v", told, failed, rep, err)
		}
		return rep
	}

	down := errors.New("down")
	if _, err := idem.New(tab.Store, callertest.Anybody, at).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (idem.Response, error) {
		return idem.Response{}, down
	}); !errors.Is(err, down) {
		t.Fatal(err)
	}
	if rep := run(); !rep.OldestOpen.IsZero() || rep.Coverage != 1 || !rep.Complete {
		t.Errorf("a freed key: %+v", rep)
	}
	clock.Advance(time.Hour)
	claimed := clock.Now()
	if _, err := idem.New(tab.Store, callertest.Anybody, at).Do(t.Context(), tabletest.Post(tabletest.NewKey(), "{}"), func(context.Context) (idem.Response, error) {
		clock.Advance(time.Second)
		if rep := run(); !rep.OldestOpen.Equal(claimed.Truncate(time.Millisecond)) {
			t.Errorf("in flight: %v, want %v", rep.OldestOpen, claimed)
		}
		return idem.Response{Status: 201}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if rep := run(); !rep.OldestOpen.IsZero() {
		t.Errorf("finished: %+v", rep)
	}

	denied := stream.NewSweep(failingScan{}, tab.Store, func(o *stream.SweepOptions) {
		o.Name = "denied"
		o.Hooks.Swept = func(_ context.Context, r *stream.Report, err error) {
			told, failed = append(told, r), append(failed, err)
		}
	})
	if _, err := denied.Run(t.Context()); err == nil || failed[len(failed)-1] == nil || told[len(told)-1].Coverage != 0 {
		t.Errorf("a sweep without a scan: %v, told %v of %+v", err, failed[len(failed)-1], told[len(told)-1])
	}
	if n := len(told); n != 4 {
		t.Fatalf("told of %d runs, want 4", n)
	}
	if _, err := denied.List(t.Context()); err == nil || len(told) != 4 {
		t.Errorf("a list told of a run: %v", err)
	}
}

// failingScan is a table that can't be scanned.
type failingScan struct{}

func (failingScan) Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return nil, errors.New("no right to scan")
}

// The hooks of Log write a line each; without a logger, to the default one.
func TestLogTellsWhatGoesWell(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	for _, h := range []stream.Hooks{stream.Log(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))), stream.Log(nil)} {
		h.Delivered(t.Context(), jobs.Delivery{})
		h.Delayed(t.Context(), jobs.Ticket{})
		h.Queued(t.Context(), jobs.Ticket{})
		h.Tried(t.Context(), stream.Try{})
		h.MadeStuck(t.Context(), stream.Entry{})
	}
	for _, line := range []string{"job delivered", "jobs delayed", "ticket queued", "ticket tried", "operation given up"} {
		if strings.Count(log.String(), line) != 1 {
			t.Errorf("%q is not said once:\n%s", line, log.String())
		}
	}
}
