package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/retrysign"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// Path is what one way of a request takes: the same figures in every run.
type Path struct {
	ID    string         `json:"id"`
	Group string         `json:"group"`
	Does  string         `json:"does"`
	Calls map[string]int `json:"calls"`
	// Write and Read are units of the records; Theirs are write units of the user's own items.
	Write  float64 `json:"write_units"`
	Read   float64 `json:"read_units"`
	Theirs float64 `json:"your_write_units,omitempty"`
	// Bytes are the sizes of the record and its companions afterwards.
	Bytes int `json:"bytes_at_rest"`
	// Dollars are the price of a million, without the user's own items.
	Dollars float64 `json:"dollars_per_million"`
}

// path is how a Path comes about. What prepare does isn't counted.
type path struct {
	id, group, does string
	prepare         func(context.Context, *bed) error // may be nil
	run             func(context.Context, *bed) error
}

const (
	answerSize = 300
	largeSize  = 20 << 10
	hugeSize   = 1 << 20
	sweepCount = 1000
)

var (
	resumable = func(o *idem.Options) { o.Function, o.Resumable, o.MaxRequest = "f", true, 1<<20 }
	large     = func(o *idem.Options) { o.MaxBody = 4 << 20 }
	plain     = func(*idem.Options) {}

	errDown = errors.New("the provider is down")
)

// request is the request of every path, unless it says otherwise.
func request() idem.Request { return post("8e03978e-40d5-43e8-bc93-6894a57f9324", `{"amount":2000}`) }

// retry is the request with the sign of a retry, true or not.
func retry() idem.Request {
	r := request()
	r.Header = http.Header{retrysign.Client: {"1"}}
	return r
}

// with returns the request with a body that doesn't compress well.
func with(size int) idem.Request { return post("8e03978e-40d5-43e8-bc93-6894a57f9324", noise(size)) }

type handler = func(context.Context) (idem.Response, error)

// fresh is a new request: the engine's options and the handler.
func fresh(req func() idem.Request, opt func(*idem.Options), fn func(*bed) handler) func(context.Context, *bed) error {
	return func(ctx context.Context, b *bed) error {
		res, err := b.engine(opt).Do(ctx, req(), fn(b))
		if err == nil && res.Replayed {
			err = errors.New("a replay instead of a new request")
		}
		return err
	}
}

func replayed(req func() idem.Request, opt func(*idem.Options)) func(context.Context, *bed) error {
	return func(ctx context.Context, b *bed) error {
		res, err := b.engine(opt).Do(ctx, req(), nil)
		if err == nil && !res.Replayed {
			err = errors.New("no replay")
		}
		return err
	}
}

// refused expects an error.
func refused(want error, run func(context.Context, *bed) error) func(context.Context, *bed) error {
	return func(ctx context.Context, b *bed) error {
		if err := run(ctx, b); !errors.Is(err, want) {
			return fmt.Errorf("got %w, want %w", cmp.Or(err, errors.New("no error")), want)
		}
		return nil
	}
}

func answers(body string) func(*bed) handler { return func(*bed) handler { return creates(body) } }

func fails(*bed) handler {
	return func(context.Context) (idem.Response, error) { return idem.Response{}, errDown }
}

type row struct {
	ID string `dynamodbav:"id"`
}

// phased is a handler of k phases, the last of which is the finish. With writes, each
// writes a small item of the user's.
func phased(k int, writes bool) func(*bed) handler {
	return func(b *bed) handler {
		write := func(tx *idem.Tx, i int) {
			if writes {
				tx.Write(dynamo.Put(b.app, row{strconv.Itoa(i)}))
			}
		}
		return func(ctx context.Context) (idem.Response, error) {
			for i := range k - 1 {
				if _, err := idem.Atomic(ctx, fmt.Sprint("phase_", i), func(_ context.Context, tx *idem.Tx) (int, error) {
					write(tx, i)
					return i, nil
				}); err != nil {
					return idem.Response{}, err
				}
			}
			return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
				write(tx, k)
				return created(order(answerSize)), nil
			})
		}
	}
}

// foreign calls somebody else, and finishes.
func foreign(opts ...idem.PhaseOption) func(*bed) handler {
	return func(*bed) handler {
		return func(ctx context.Context) (idem.Response, error) {
			if _, err := idem.Foreign(ctx, "charge_created", func(_ context.Context, tx *idem.Tx) (string, error) { return tx.Key("payments"), nil }, opts...); err != nil {
				return idem.Response{}, err
			}
			return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return created(order(answerSize)), nil })
		}
	}
}

// lookedUp makes a call to a system without keys, which ends in down; a call in doubt is looked up.
func lookedUp(found idem.Found, down error) func(*bed) handler {
	return func(*bed) handler {
		return func(ctx context.Context) (idem.Response, error) {
			if _, err := idem.Foreign(ctx, "charge_created", func(_ context.Context, tx *idem.Tx) (string, error) { return tx.Key("payments"), down },
				idem.NotIdempotent(), idem.Sends("payments", 2000),
				idem.LookUp(func(context.Context, idem.Call) (string, idem.Found, error) { return "ch_1", found, nil }, 0)); err != nil {
				return idem.Response{}, err
			}
			return idem.Finish(ctx, func(context.Context, *idem.Tx) (idem.Response, error) { return created(order(answerSize)), nil })
		}
	}
}

// inDoubt leaves a call without an answer.
func inDoubt(ctx context.Context, b *bed) error {
	return refused(errDown, fresh(request, plain, lookedUp(0, errDown)))(ctx, b)
}

// staging stages n jobs and writes nothing else.
func staging(n int) func(*bed) handler {
	return func(*bed) handler {
		return func(ctx context.Context) (idem.Response, error) {
			for i := range n {
				if err := idem.Stage(ctx, idem.NewJob("receipt", i)); err != nil {
					return idem.Response{}, err
				}
			}
			return created(order(answerSize)), nil
		}
	}
}

// paths are all paths, in the table's order.
func paths() []path {
	small, usual := request, answers(order(answerSize))
	isNew := fresh(small, plain, usual)
	largeAnswer, hugeAnswer := answers(noise(largeSize)), answers(noise(hugeSize))
	largeRequest := func() idem.Request { return with(largeSize) }
	hugeRequest := func() idem.Request { return with(600 << 10) }
	const (
		request  = "A request"
		phases   = "Phases: k commits, the last with the answer"
		calls    = "Calls to others, and jobs"
		bodies   = "Large answers and stored requests"
		after    = "After failures"
		offstage = "In the background"
	)
	all := []path{
		{"new", request, "new request, answer of 300 bytes", nil, isNew},
		{"new-marked", request, "the same, marked as a retry by mistake", nil, fresh(retry, plain, usual)},
		{"replay", request, "replay", isNew, replayed(small, plain)},
		{"replay-marked", request, "replay of a marked retry", isNew, replayed(retry, plain)},
		{"mismatch", request, "another body under the same key: 422", isNew, refused(idem.ErrMismatch, fresh(func() idem.Request { return with(20) }, plain, usual))},
		{"in-flight", request, "another attempt holds the key: 409", nil, nil},
		{"in-flight-marked", request, "the same to a marked retry", nil, nil},
		{"waiting", request, "another attempt holds the key, `InFlightWait`: replay at the sixth read", nil, nil},
		{"no-key", request, "refused before any call: no key", nil, func(ctx context.Context, b *bed) error {
			req := small()
			req.Key = ""
			if _, err := b.engine().Do(ctx, req, creates("{}")); err == nil {
				return errors.New("no error")
			}
			return nil
		}},
	}
	for _, k := range []int{1, 2, 5} {
		all = append(all,
			path{fmt.Sprint("phases-", k), phases, fmt.Sprintf("k = %d, a write of yours in each", k), nil, fresh(small, plain, phased(k, true))},
			path{fmt.Sprintf("phases-%d-no-writes", k), phases, fmt.Sprintf("k = %d, no writes of yours", k), nil, fresh(small, plain, phased(k, false))})
	}
	return append(
		all,
		path{"foreign", calls, "a call to others (`Foreign`), then the finish", nil, fresh(small, plain, foreign())},
		path{"foreign-not-idempotent", calls, "the same, `NotIdempotent`", nil, fresh(small, plain, foreign(idem.NotIdempotent()))},
		path{"foreign-looked-up", calls, "the same with a `LookUp`", nil, fresh(small, plain, lookedUp(0, nil))},
		path{"job", calls, "an answer with one staged job", nil, fresh(small, plain, staging(1))},
		path{"jobs-10", calls, "an answer with ten staged jobs", nil, fresh(small, plain, staging(10))},

		path{"answer-20KB", bodies, "new, answer of 20 KB that doesn't compress", nil, fresh(small, plain, largeAnswer)},
		path{"answer-20KB-replay", bodies, "its replay", fresh(small, plain, largeAnswer), replayed(small, plain)},
		path{"answer-1MB", bodies, "new, answer of 1 MB that doesn't compress", nil, fresh(small, large, hugeAnswer)},
		path{"answer-1MB-replay", bodies, "its replay", fresh(small, large, hugeAnswer), replayed(small, large)},
		path{"resumable", bodies, "new, `Resumable`, small request", nil, fresh(small, resumable, usual)},
		path{"resumable-20KB", bodies, "new, `Resumable`, request of 20 KB", nil, fresh(largeRequest, resumable, usual)},
		path{"resumable-600KB", bodies, "new, `Resumable`, request of 600 KB", nil, fresh(hugeRequest, resumable, usual)},
		path{"resumable-20KB-replay", bodies, "replay of the request of 20 KB", fresh(largeRequest, resumable, usual), replayed(largeRequest, resumable)},

		path{"released", after, "the handler fails: claim and release", nil, refused(errDown, fresh(small, plain, fails))},
		path{"released-retry", after, "the retry after that", refused(errDown, fresh(small, plain, fails)), isNew},
		path{"released-marked", after, "the same, marked", refused(errDown, fresh(small, plain, fails)), fresh(retry, plain, usual)},
		path{"take-over", after, "a client's retry takes over from an attempt that died", died, isNew},
		path{"take-over-marked", after, "the same, marked", died, fresh(retry, plain, usual)},
		path{"completer", after, "a completer's ticket takes over, with the handler's answer", abandoned(small), resumes},
		path{"completer-20KB", after, "the same with a stored request of 20 KB", abandoned(largeRequest), resumes},
		path{"look-up-early", after, "a call in doubt is looked up, and it is too early to tell", inDoubt, refused(idem.ErrUnfinished, fresh(small, plain, lookedUp(idem.NotMade, nil)))},
		path{"look-up-made", after, "the same, and the call was made", inDoubt, fresh(small, plain, lookedUp(idem.Made, nil))},
		path{"look-up-not-made", after, "the same, and the call was not made: it is made", func(ctx context.Context, b *bed) error {
			err := inDoubt(ctx, b)
			b.now = b.now.Add(time.Hour)
			return err
		}, fresh(small, plain, lookedUp(idem.NotMade, nil))},
		path{"settle", after, "a person settles a stuck operation with an answer", func(ctx context.Context, b *bed) error {
			if err := b.abandon(ctx, small(), resumable, func(o *idem.Options) { o.CallsOut = true }); err != nil {
				return err
			}
			b.now = b.now.Add(time.Hour)
			rec, err := b.record(ctx)
			if err != nil {
				return err
			}
			return b.engine(resumable).MarkStuck(ctx, state.TicketFor(rec), "the provider is gone")
		}, func(ctx context.Context, b *bed) error {
			rec, err := b.record(ctx)
			if err != nil {
				return err
			}
			b.meter.reset()
			answer := created(order(answerSize))
			return b.engine(resumable).Settle(ctx, rec.PK, idem.Settlement{Answer: &answer, By: "operator"})
		}},

		path{"drain", offstage, "drain: an operation's one job", fresh(small, plain, staging(1)), drains},
		path{"drain-10", offstage, "drain: an operation's ten jobs", fresh(small, plain, staging(10)), drains},
		path{"tickets", offstage, "completer: a stream record becomes a ticket (the queue's message is not counted)", abandoned(small), func(ctx context.Context, b *bed) error {
			ev, err := b.event(ctx)
			if err != nil {
				return err
			}
			q := &tickets{}
			if _, err := stream.NewCompleter(q, func(o *stream.CompleterOptions) { o.Now, o.Logger = func() time.Time { return b.now }, quiet }).Handle(ctx, ev); err != nil || q.n != 1 {
				return fmt.Errorf("%d tickets: %w", q.n, err)
			}
			return nil
		}},
		path{"sweep-1000", offstage, fmt.Sprintf("sweep: a pass over %d finished records", sweepCount), func(ctx context.Context, b *bed) error {
			return fill(ctx, b, sweepCount, usual(b))
		}, func(ctx context.Context, b *bed) error {
			rep, err := stream.NewSweep(b.client, b.store, func(o *stream.SweepOptions) {
				o.PagesPerSecond, o.Logger, o.Now = 1000, quiet, func() time.Time { return b.now }
			}).Run(ctx)
			if err == nil && rep.Scanned < sweepCount {
				err = fmt.Errorf("%d records scanned", rep.Scanned)
			}
			return err
		}},
	)
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// died leaves an operation whose attempt died, after its lease.
func died(ctx context.Context, b *bed) error {
	err := b.abandon(ctx, request())
	b.now = b.now.Add(time.Hour)
	return err
}

// abandoned leaves a resumable operation whose attempt died, after its lease.
func abandoned(req func() idem.Request) func(context.Context, *bed) error {
	return func(ctx context.Context, b *bed) error {
		err := b.abandon(ctx, req(), resumable)
		b.now = b.now.Add(time.Hour)
		return err
	}
}

func resumes(ctx context.Context, b *bed) error {
	rec, err := b.record(ctx)
	if err != nil {
		return err
	}
	b.meter.reset()
	_, err = b.engine(resumable).Resume(ctx, state.TicketFor(rec), func(context.Context, *idem.Request) (idem.Response, error) {
		return created(order(answerSize)), nil
	})
	return err
}

func drains(ctx context.Context, b *bed) error {
	ev, err := b.event(ctx)
	if err != nil {
		return err
	}
	re, err := stream.NewDrain(b.store, jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return nil })).Handle(ctx, ev)
	if err == nil && len(re.BatchItemFailures) > 0 {
		err = errors.New("the drain has failures")
	}
	return err
}

// fill makes n finished records.
func fill(ctx context.Context, b *bed, n int, fn handler) error {
	s, err := dynamo.New(b.direct, b.table)
	if err != nil {
		return err
	}
	engine := b.engineOn(s)
	for i := range n {
		if _, err := engine.Do(ctx, post(fmt.Sprintf("key-%032d", i), "{}"), fn); err != nil {
			return err
		}
	}
	return nil
}

// tickets is a queue that counts.
type tickets struct{ n int }

func (q *tickets) Put(_ context.Context, all []jobs.Ticket) []error {
	q.n += len(all)
	return nil
}

// event is what a stream shows of the table: each record as it is, as inserted.
func (b *bed) event(ctx context.Context) (ev events.DynamoDBEvent, _ error) {
	all, err := b.items(ctx)
	if err != nil {
		return ev, err
	}
	for i, it := range all {
		if it["st"] == nil {
			continue
		}
		ev.Records = append(ev.Records, streamed(it, i, b.now))
	}
	return ev, nil
}

// streamed is the stream record of an item that has just been inserted.
func streamed(it item, i int, at time.Time) events.DynamoDBEventRecord {
	image := streamimage.Of(it)
	return events.DynamoDBEventRecord{
		EventID: strconv.Itoa(i), EventName: "INSERT", EventSource: "aws:dynamodb", AWSRegion: "us-east-1",
		Change: events.DynamoDBStreamRecord{
			ApproximateCreationDateTime: events.SecondsEpochTime{Time: at},
			Keys:                        map[string]events.DynamoDBAttributeValue{"pk": image["pk"]},
			NewImage:                    image,
			SequenceNumber:              fmt.Sprintf("%021d", i+1),
			StreamViewType:              "NEW_AND_OLD_IMAGES",
		},
	}
}

// measurePaths runs every path once, each on a table of its own.
func measurePaths(ctx context.Context, db *dynamotest.DB, prices Prices) ([]Path, error) {
	special := map[string]func(context.Context, *bed) error{"in-flight": inFlight(request), "in-flight-marked": inFlight(retry), "waiting": waits}
	var all []Path
	for _, p := range paths() {
		b, err := newBed(ctx, db)
		if err != nil {
			return nil, err
		}
		if p.prepare != nil {
			if err := p.prepare(ctx, b); err != nil {
				return nil, fmt.Errorf("%s: prepare: %w", p.id, err)
			}
		}
		run := p.run
		if run == nil {
			run = special[p.id]
		}
		b.meter.reset()
		if err := run(ctx, b); err != nil {
			return nil, fmt.Errorf("%s: %w", p.id, err)
		}
		c := b.meter.total()
		size, err := b.atRest(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, Path{
			ID: p.id, Group: p.group, Does: p.does, Calls: c.Calls, Write: c.Write, Read: c.Read, Theirs: c.Theirs,
			Bytes: size, Dollars: prices.of(c.Write, c.Read),
		})
	}
	return all, nil
}

// inFlight counts an attempt beside the one that holds the key.
func inFlight(req func() idem.Request) func(context.Context, *bed) error {
	return func(ctx context.Context, b *bed) error {
		e := b.engine()
		var counted cost
		_, err := e.Do(ctx, request(), func(context.Context) (idem.Response, error) {
			b.meter.reset()
			_, err := e.Do(ctx, req(), nil) // another client: not the handler's context
			if !errors.Is(err, idem.ErrInFlight) {
				return idem.Response{}, fmt.Errorf("got %w, want in flight", err)
			}
			counted = b.meter.total()
			return created(order(answerSize)), nil
		})
		b.meter.set(counted)
		return err
	}
}

// waits counts an attempt that waits. The holder finishes after the fifth read.
func waits(ctx context.Context, b *bed) error {
	s, err := dynamo.New(b.direct, b.table)
	if err != nil {
		return err
	}
	claimed, looked, over := make(chan struct{}), make(chan struct{}), make(chan struct{})
	holder := b.engineOn(s) // its calls don't count
	b.meter.watch(func(op string, nth int) {
		if op == "GetItem" && nth == 5 {
			close(looked)
			<-over // the sixth read comes after the finish
		}
	})
	held := make(chan error, 1)
	go func() {
		_, err := holder.Do(ctx, request(), func(context.Context) (idem.Response, error) {
			close(claimed)
			<-looked
			return created(order(answerSize)), nil
		})
		held <- err
		close(over)
	}()
	select {
	case <-claimed:
	case err := <-held:
		return err
	}
	res, err := b.engine(func(o *idem.Options) { o.InFlight = idem.InFlightWait }).Do(ctx, request(), nil)
	if err == nil && !res.Replayed {
		err = errors.New("no replay")
	}
	return errors.Join(err, <-held)
}
