package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/sink"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

const (
	retention = 6 * time.Hour
	grace     = time.Minute
	widest    = time.Hour + 5*time.Second // of the clocks' faults
)

// order is what a client orders.
type order struct {
	Order string `json:"order"`
	Memo  string `json:"memo"`
}

// receipt is the answer to an order.
type receipt struct {
	Order  string `json:"order"`
	Tenant string `json:"tenant"`
	Memo   string `json:"memo"`
	Op     string `json:"op"`
	Charge string `json:"charge,omitempty"`
}

// task is what a job is about.
type task struct {
	Order string `json:"order"`
}

type book struct {
	PK string `dynamodbav:"pk"`
}

// program returns the program of a sandbox, as it begins.
func (w *world) program(sb *sandbox) invoker {
	quiet := slog.New(slog.DiscardHandler)
	store, err := dynamo.New(link{sb}, records, func(o *dynamo.Options) {
		if w.inline > 0 {
			o.Inline = w.inline
		}
	})
	if err != nil {
		panic(err)
	}
	options := func(o *idem.Options) {
		o.Function, o.Retention, o.Logger, o.Now = sb.function, retention, quiet, sb.now
		if sb.function == apiFunction {
			w.rolls.means(sb.release, o)
		}
		if w.alter != nil {
			w.alter(o)
		}
	}
	app := &app{sb: sb}
	switch sb.function {
	case apiFunction:
		router := lambda.NewRouter(lambda.HTTPAPI)
		router.Keyed("POST /rides", idem.New(store, callertest.Anybody, options, func(o *idem.Options) { o.Resumable = true }), app.ride)
		router.Keyed("POST /fees", idem.New(store, callertest.Anybody, options, func(o *idem.Options) { o.CallsOut = w.hash("calls out", sb.name)%2 == 0 }), app.fee)
		router.Keyed("POST /transfers", idem.New(store, callertest.Anybody, options, func(o *idem.Options) { o.Resumable = w.stored }), app.transfer)
		router.Keyed("POST /notes", idem.New(store, callertest.Anybody, options, func(o *idem.Options) {
			o.InFlight = idem.InFlightRefuse
			if w.hash("wait", sb.name)%2 == 0 {
				o.InFlight = idem.InFlightWait
			}
		}), app.note)
		if w.tellFlaw {
			return &telling{router, app}
		}
		return router
	case consumerFunction:
		engine := idem.New(store, callertest.Anybody, options, func(o *idem.Options) { o.Namespace = "consumer" })
		return lambda.WrapEach(engine, lambda.SQS, app.receive)
	}
	out := sink.NewQueue(link{sb}, jobsURL)
	var deliver jobs.Sink = out
	if w.sinkFlaw != nil {
		deliver = w.sinkFlaw(out)
	}
	route := jobs.Route{"receipt": deliver, "audit": deliver, "remind": deliver, "ship": sink.NewStateMachine(link{sb}, shipping)}
	tickets := completer.NewQueue(link{sb}, ticketsURL, func(o *completer.QueueOptions) {
		o.Schedule, o.Role, o.Logger = link{sb}.CreateSchedule, "later", quiet
	})
	functions := completer.Invoke(link{sb}, apiFunction)
	sweepOptions := func(o *stream.SweepOptions) {
		o.Segments, o.PageSize, o.PagesPerSecond = 1, 100, 20
	}
	if w.apart {
		drain := stream.NewDrain(store, route, func(o *stream.DrainOptions) { o.Logger = quiet })
		return &parts{
			feed: stream.Both{Drain: drain, Completer: stream.NewCompleter(tickets, func(o *stream.CompleterOptions) { o.Logger, o.Grace, o.Now = quiet, grace, sb.now })},
			tickets: completer.New(store, tickets, functions, func(o *completer.Options) {
				o.Logger, o.Grace, o.Jobs = quiet, grace, drain.Retry // by the clock of its queue, as in any process
				o.Listed = func(ctx context.Context, t jobs.Ticket, why error) error { return stream.Refer(ctx, store, t, why) }
			}),
			sweep: stream.NewSweep(link{sb}, store, sweepOptions, func(o *stream.SweepOptions) {
				o.Drain, o.Queue, o.Grace, o.Logger, o.Now = drain, tickets, grace, quiet, sb.now
				o.MarkStuck = idem.New(store, callertest.Anybody, options).MarkStuck
			}),
		}
	}
	return worker.New(link{sb}, store, tickets, func(o *worker.Options) {
		o.Sink, o.Functions, o.Grace, o.Logger = route, functions, grace, quiet
		o.Completer = func(o *stream.CompleterOptions) { o.Now = sb.now }
		o.Sweep = func(o *stream.SweepOptions) {
			sweepOptions(o)
			o.Now = sb.now
		}
	})
}

// parts are the functions of a worker without it: no ticket delays jobs, and a
// failure has the batch come again.
type parts struct {
	feed    stream.Both
	tickets *completer.Handler
	sweep   *stream.Sweep
}

func (p *parts) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	var ev struct{ Records []struct{} }
	switch err := json.Unmarshal(payload, &ev); {
	case err != nil:
		return nil, err
	case len(ev.Records) == 0:
		return p.sweep.Invoke(ctx, payload)
	default:
		return p.tickets.Invoke(ctx, payload)
	}
}

func (p *parts) stream(ctx context.Context, ev events.DynamoDBEvent) ([]byte, error) {
	re, err := p.feed.Handle(ctx, ev)
	return []byte(encode(re)), err
}

// app are the handlers of a sandbox.
type app struct {
	sb    *sandbox
	plain *response // the last answer that the handler gave without keeping it
}

// telling is an API that tells a client what its handler said, though that isn't kept.
type telling struct {
	invoker
	app *app
}

func (t *telling) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	t.app.plain = nil
	out, err := t.invoker.Invoke(ctx, payload)
	if t.app.plain != nil && strings.Contains(string(out), "idempotency_unfinished") {
		return []byte(encode(t.app.plain)), err
	}
	return out, err
}

// declines answers for good without [idem.Respond], though the operation goes on.
func (a *app) declines(in order, tenant, id string) (response, error) {
	a.plain = &response{StatusCode: http.StatusConflict, Body: encode(receipt{in.Order, tenant, in.Memo, id, "sold out"})}
	return *a.plain, nil
}

var (
	errHandler = errors.New("the handler fails")
	errSoldOut = errors.New("sold out")
)

// trouble is what a handler does wrong now and then.
func (a *app) trouble(ctx context.Context, place string) error {
	w, name := a.sb.w, actorOf(ctx, a.sb)
	v, err := w.ask(ctx, name, "at", place, a.sb, func(c *call) {
		switch {
		case w.fires(handlerErr, 0.01):
			c.give(handlerErr, nil)
		case w.fires(handlerDies, 0.003):
			c.give(handlerDies, nil)
		case w.fires(timeLimit, 0.002):
			c.give(timeLimit, nil)
		case place == "before the charge" && w.fires(soldOut, 0.01):
			c.give(soldOut, nil)
		case w.likely(0.3): // it works for a while: others may come
			w.after(w.between(10*time.Millisecond, 1500*time.Millisecond), func() { c.give(nil, nil) })
			return
		default:
			c.give(nil, nil)
			return
		}
		w.note(c.actor, "trouble %s", place)
	})
	switch v {
	case handlerErr:
		return errHandler
	case soldOut:
		return errSoldOut
	case handlerDies:
		panic("the handler panics")
	case timeLimit: // it doesn't listen to its context
		<-time.After(30 * time.Second)
	}
	return err
}

// swallows reports whether the handler takes the error of its call for a declined card.
func (a *app) swallows(ctx context.Context) bool {
	v, err := a.sb.w.ask(ctx, actorOf(ctx, a.sb), "asks", "what the error means", a.sb, func(c *call) { c.give(a.sb.w.fires(swallowed, 0.2), nil) })
	taken, _ := v.(bool)
	return err == nil && taken
}

func (a *app) read(ctx context.Context, ev request) (tenant string, in order, err error) {
	tenant = ev.RequestContext.Authorizer.JWT.Claims["sub"]
	if op, ok := idem.FromContext(ctx); ok {
		if named, ok := strings.CutPrefix(op.Caller().Subject, isAccount); ok {
			tenant, _, _ = strings.Cut(named, onRoute)
		}
	}
	return tenant, in, json.Unmarshal([]byte(ev.Body), &in)
}

func opID(ctx context.Context) string {
	op, ok := idem.FromContext(ctx)
	if !ok {
		return ""
	}
	return op.ID()
}

// count is an update that counts an effect in the order's book.
func count(o order, field, tenant, op string) *dynamo.Write {
	return dynamo.Update(books, book{o.Order}, "SET #n = if_not_exists(#n, :zero) + :one, tenant = :tenant, memo = :memo, op = :op",
		dynamo.Args{"#n": field, ":zero": 0, ":one": 1, ":tenant": tenant, ":memo": o.Memo, ":op": op})
}

// ride is a resumable handler: a phase, a call of the provider, and the answer with a
// job. In version 2 of the program it has another phase in between,
// or doesn't understand the provider.
func (a *app) ride(ctx context.Context, ev request) (response, error) {
	tenant, in, err := a.read(ctx, ev)
	if err != nil {
		return response{}, err
	}
	w := a.sb.w
	variant := w.hash("variant", in.Order)
	if err := a.trouble(ctx, "begin"); err != nil {
		return response{}, err
	}
	id := opID(ctx)
	_, err = idem.Atomic(ctx, "created", func(_ context.Context, tx *idem.Tx) (string, error) {
		tx.Write(count(in, "created", tenant, id))
		tx.Stage(idem.NewJob("audit", task{in.Order}))
		return in.Order, nil
	})
	if err != nil {
		return response{}, err
	}
	if a.sb.version == 2 && !w.broken {
		if _, err = idem.Atomic(ctx, "quoted", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
			return response{}, err
		}
	}
	switch err := a.trouble(ctx, "before the charge"); {
	case errors.Is(err, errSoldOut):
		return a.declines(in, tenant, id)
	case err != nil:
		return response{}, err
	}
	if w.hopeless(in.Order) {
		return response{}, errHandler
	}
	var opts []idem.PhaseOption
	if variant%5 == 0 {
		opts = append(opts, idem.Sends("pay", in))
	}
	charge, err := a.charge(ctx, in, tenant, opts...)
	if err != nil {
		if a.swallows(ctx) {
			return a.declines(in, tenant, id)
		}
		return response{}, err
	}
	if err := a.trouble(ctx, "behind the charge"); err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) { return a.paid(tx, in, tenant, id, charge), nil })
}

// fee begins with a call of the provider, before which nothing is committed, and ends with
// a plain answer. No completer runs it.
func (a *app) fee(ctx context.Context, ev request) (response, error) {
	tenant, in, err := a.read(ctx, ev)
	if err == nil {
		err = a.trouble(ctx, "begin")
	}
	if err != nil {
		return response{}, err
	}
	charge, err := a.charge(ctx, in, tenant)
	if err == nil {
		err = a.trouble(ctx, "behind the charge")
	}
	if err != nil {
		return response{}, err
	}
	return idem.Atomic(ctx, "paid", func(_ context.Context, tx *idem.Tx) (response, error) {
		return a.paid(tx, in, tenant, opID(ctx), charge), nil
	})
}

// charge calls the provider.
func (a *app) charge(ctx context.Context, in order, tenant string, opts ...idem.PhaseOption) (string, error) {
	w := a.sb.w
	return idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		id, err := a.sb.pay(ctx, w.derived(tx.Key("pay")), in.Order)
		if a.sb.version == 2 && w.broken {
			return "", errors.Join(errHandler, err) // it doesn't understand the provider's answer
		}
		if errors.Is(err, errDeclined) {
			return "", idem.Respond(response{StatusCode: http.StatusPaymentRequired, Body: encode(receipt{in.Order, tenant, in.Memo, opID(ctx), "declined"})})
		}
		return id, err
	}, append(opts, trust())...)
}

// paid commits what was charged, and returns its answer.
func (a *app) paid(tx *idem.Tx, in order, tenant, id, charge string) response {
	tx.Write(count(in, "paid", tenant, id))
	tx.Stage(idem.NewJob("receipt", task{in.Order}))
	tx.Stage(idem.NewJob("ship", task{in.Order}))
	remind := idem.NewJob("remind", task{in.Order})
	remind.At = time.Now().Add(a.sb.w.laterBy(in.Order))
	tx.Stage(remind)
	return response{StatusCode: http.StatusCreated, Body: encode(receipt{in.Order, tenant, in.Memo, id, charge})}
}

// hopeless reports whether the handler fails for an order whatever happens.
func (w *world) hopeless(order string) bool {
	return !w.off[hopeless] && w.odds(0.01*w.rate, "hopeless", order)
}

// derived is the key for the provider; a planted fault may change it.
func (w *world) derived(key string) string {
	if w.deriveFlaw {
		return fmt.Sprint(key, time.Since(w.begin))
	}
	return key
}

// note is a handler with one write.
func (a *app) note(ctx context.Context, ev request) (response, error) {
	tenant, in, err := a.read(ctx, ev)
	if err != nil {
		return response{}, err
	}
	if err := a.trouble(ctx, "begin"); err != nil {
		return response{}, err
	}
	w := a.sb.w
	v, err := w.ask(ctx, actorOf(ctx, a.sb), "asks", "whether it may", a.sb, func(c *call) { c.give(w.fires(refusal, 0.1), nil) })
	if err != nil {
		return response{}, err
	}
	if refused, _ := v.(bool); refused {
		return response{StatusCode: http.StatusTooManyRequests, Body: "later"}, nil
	}
	id := opID(ctx)
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Write(count(in, "noted", tenant, id))
		tx.Stage(idem.NewJob("audit", task{in.Order}))
		return response{StatusCode: http.StatusCreated, Body: encode(receipt{in.Order, tenant, in.Memo, id, ""})}, nil
	})
}

// receive is the consumer of jobs: it does the work of each id once.
func (a *app) receive(ctx context.Context, m events.SQSMessage) error {
	id := ""
	if v := m.MessageAttributes[lambda.KeyAttribute].StringValue; v != nil {
		id = *v
	}
	if err := a.trouble(ctx, "a job"); err != nil {
		return err
	}
	_, err := idem.Atomic(ctx, "done", func(_ context.Context, tx *idem.Tx) (int, error) {
		tx.Write(dynamo.Update(books, book{"job " + id}, "SET done = if_not_exists(done, :zero) + :one", dynamo.Args{":zero": 0, ":one": 1}))
		return 1, nil
	})
	return err
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
