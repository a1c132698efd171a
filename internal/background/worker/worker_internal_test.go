package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
)

// over returns a worker of a table.
func over(t *testing.T, api interface {
	API
	dynamo.API
}, optFns ...func(*Options),
) *Worker {
	t.Helper()
	store, err := dynamo.New(api, "records")
	if err != nil {
		t.Fatal(err)
	}
	return New(api, store, completer.NewQueue(noQueue{}, "url"), optFns...)
}

// A worker has all that it needs without options, and takes those that it is given.
func TestSettingsOfAWorker(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	for name, tc := range map[string]struct{ set, want Options }{
		"none": {Options{}, Options{
			Share: 5 * time.Second, Grace: state.DefaultGrace, Sink: jobs.Route{}, Functions: completer.Functions{},
		}},
		"all": {
			Options{Share: time.Second, Grace: time.Minute, Namespaces: []string{"rides"}, Sink: panicking{}, Functions: &askedFor{}, Logger: quiet},
			Options{Share: time.Second, Grace: time.Minute, Namespaces: []string{"rides"}, Sink: panicking{}, Functions: &askedFor{}, Logger: quiet},
		},
	} {
		var drain stream.DrainOptions
		var feed stream.CompleterOptions
		var tickets completer.Options
		var sweep stream.SweepOptions
		w := over(t, &lockedDB{}, func(o *Options) {
			*o = tc.set
			o.Drain = func(o *stream.DrainOptions) { drain = *o }
			o.Completer = func(o *stream.CompleterOptions) { feed = *o }
			o.Tickets = func(o *completer.Options) { tickets = *o }
			o.Sweep = func(o *stream.SweepOptions) { sweep = *o }
		})
		functions := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().Type() != nil && p.Last().Type().Kind().String() == "func" }, cmp.Ignore())
		if diff := cmp.Diff(tc.want, w.opt, functions, cmpopts.IgnoreUnexported(askedFor{}, slog.Logger{})); diff != "" {
			t.Errorf("%s: options (-want +got):\n%s", name, diff)
		}
		if drain.Logger != tc.want.Logger || drain.Delayed == nil || drain.Delayed.(*sharedQueue).full != tc.want.Share {
			t.Errorf("%s: the drain has %+v", name, drain)
		}
		if feed.Logger != tc.want.Logger || feed.Grace != tc.want.Grace || !feed.LeaveToSweep {
			t.Errorf("%s: the completer has %+v", name, feed)
		}
		if tickets.Logger != tc.want.Logger || tickets.Grace != tc.want.Grace || tickets.Concurrency != 10 || tickets.Jobs == nil || tickets.Listed == nil || tickets.Resumed == nil {
			t.Errorf("%s: the handler of tickets has %+v", name, tickets)
		}
		if sweep.Logger != tc.want.Logger || sweep.Grace != tc.want.Grace || sweep.Drain == nil || sweep.Queue != drain.Delayed || sweep.MarkStuck == nil {
			t.Errorf("%s: the sweep has %+v", name, sweep)
		}
	}
	for name, set := range map[string]Options{"share": {Share: -1}, "grace": {Grace: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a %s below 0 is taken", name)
				}
			}()
			over(t, &lockedDB{}, func(o *Options) { *o = set })
		}()
	}
}

// downDB is a table that can't be scanned, or whose index can't be asked.
type downDB struct {
	lockedDB
	scan, query error
}

func (db *downDB) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if db.scan != nil {
		return nil, db.scan
	}
	return db.lockedDB.Scan(ctx, in)
}

func (db *downDB) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if db.query != nil {
		return nil, db.query
	}
	return db.lockedDB.Query(ctx, in)
}

// Each event has its answer, and its error where the table can't be read.
func TestEventsOfEachSource(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	const none = `{"count":0,"oldest_s":0,"by_reason":{"blocked":{"count":0,"oldest_s":0},"parked":{"count":0,"oldest_s":0},` +
		`"stuck":{"count":0,"oldest_s":0},"unknown":{"count":0,"oldest_s":0},"unreadable":{"count":0,"oldest_s":0}}}`
	for name, tc := range map[string]struct {
		event, want string
		scan, query error
		err         bool
		counted     int
	}{
		"the stream": {
			event: `{"Records":[{"eventSource":"aws:dynamodb","eventName":"INSERT","dynamodb":{"SequenceNumber":"7","Keys":{"pk":{"S":"k"}}}}]}`,
			want:  `{"batchItemFailures":[]}`,
		},
		"the queue":             {event: `{"Records":[{"eventSource":"aws:sqs","messageId":"1","body":"{\"pk\":\"v1##k\",\"id\":\"i\",\"due_ms\":1}"}]}`, want: `{"batchItemFailures":[]}`},
		"a count":               {event: `{"source":"aws.scheduler","task":"count"}`, counted: 1, want: none},
		"a count without index": {event: `{"source":"aws.scheduler","task":"count"}`, query: down, err: true},
		"a sweep":               {event: `{"source":"aws.scheduler"}`, scan: down, err: true},
		"nobody's":              {event: `{"source":"my.shop"}`, err: true},
	} {
		counted := 0
		w := over(t, &downDB{scan: tc.scan, query: tc.query}, func(o *Options) {
			o.Logger = slog.New(slog.DiscardHandler)
			o.Hooks.Counted = func(context.Context, *stream.Counted) { counted++ }
		})
		got, err := w.Invoke(t.Context(), []byte(tc.event))
		if string(got) != tc.want || (err != nil) != tc.err || tc.scan != nil && !errors.Is(err, tc.scan) || tc.query != nil && !errors.Is(err, tc.query) || counted != tc.counted {
			t.Errorf("%s: answered %s, %v, counted %d times", name, got, err, counted)
		}
	}
}

// What became of a ticket is told to whoever wants to know it.
func TestTriedTickets(t *testing.T) {
	t.Parallel()
	ticket, is := jobs.Ticket{PK: "v1##k"}, completer.TicketOutcome{Kind: completer.TicketFailed, Error: "down"}
	tried(&Options{})(t.Context(), ticket, is)
	var got []any
	opt := &Options{Resumed: func(_ context.Context, t jobs.Ticket, o completer.TicketOutcome) { got = append(got, t, o) }}
	opt.Hooks.Tried = func(_ context.Context, try stream.Try) { got = append(got, try) }
	tried(opt)(t.Context(), ticket, is)
	if diff := cmp.Diff([]any{ticket, is, stream.Try{Ticket: ticket, Outcome: "failed", Err: "down"}}, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
