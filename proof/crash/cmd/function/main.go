// Command function is the program of the crash matrix: an API with a route for each
// kind of handler, or with CRASH_ROLE=consumer the consumer of the API's jobs.
//
// Settings: IDEM_TABLE; LEDGER_TABLE, with the key run and id; PROVIDER_URL; CRASH_RELEASE, the
// release of a roll-out that changes what the keys of one route mean.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/webhook"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/lambda"
)

type (
	request  = events.APIGatewayV2HTTPRequest
	response = events.APIGatewayV2HTTPResponse
)

func main() {
	client, err1 := dynamo.NewClient()
	store, err2 := dynamo.New(client, os.Getenv("IDEM_TABLE"))
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	a := &app{ledger: os.Getenv("LEDGER_TABLE"), provider: os.Getenv("PROVIDER_URL")}
	if os.Getenv("CRASH_ROLE") == "consumer" {
		lambda.Start(lambda.WrapEach(engine(store, "receipts"), lambda.SQS, a.receive))
		return
	}
	router, err := a.routes(store)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(router)
}

func engine(store *dynamo.Store, namespace string, optFns ...func(*idem.Options)) *idem.Engine {
	return idem.New(store, append([]func(*idem.Options){func(o *idem.Options) {
		idem.OneScope(o)
		o.CallerFromOp = true
		o.Namespace, o.LeaseMargin, o.MaxTries, o.MinKey = namespace, defaults.MinLeaseMargin, 3, 1
		if os.Getenv("CRASH_LOG") == "" {
			o.Logger = slog.New(slog.DiscardHandler)
		}
	}}, optFns...)...)
}

func (a *app) routes(store *dynamo.Store) (*lambda.Router[request, response], error) {
	const namespace = "crash"
	accepting := func(o *idem.Options) {
		o.Resumable, o.InFlight, o.StatusURL = true, idem.InFlightAccept, "/operations/"
	}
	verifier, err := webhook.NewStandard(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		return nil, err
	}
	hooks := webhook.New(store, "hooks", verifier, a.event, func(o *idem.Options) {
		o.LeaseMargin, o.Logger = defaults.MinLeaseMargin, slog.New(slog.DiscardHandler)
	})
	usual, accepts := engine(store, namespace), engine(store, namespace, accepting)
	calls := engine(store, namespace, func(o *idem.Options) { o.CallsOut = true })
	keeps := engine(store, namespace, func(o *idem.Options) { o.MaxBody = defaults.MaxMaxBody })

	moves := engine(store, namespace, rollsOut(os.Getenv("CRASH_RELEASE") == "second"))

	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /plain", usual, a.plain)
	router.Keyed("POST /large", keeps, a.large)
	router.Keyed("POST /moved", moves, a.moved)
	router.Keyed("POST /order", usual, a.order)
	router.Keyed("POST /ship", usual, a.ship)
	router.Keyed("POST /later", usual, a.later)
	router.Keyed("POST /charge", calls, a.charge())
	router.Keyed("POST /payout", usual, a.charge(idem.NotIdempotent()))
	router.Keyed("POST /forgotten", usual, a.charge(idem.Remembers(time.Millisecond)))
	router.Keyed("POST /transfer", usual, a.asks("/v1/transfers", idem.NotIdempotent()))
	router.Keyed("POST /asked", usual, a.asks("/v1/charges", idem.Remembers(time.Millisecond)))
	router.Keyed("POST /accepted", accepts, a.order)
	router.Keyed("POST /never", accepts, a.never)
	router.Route("POST /webhook", lambda.Webhook(lambda.HTTPAPI, hooks).Handle)
	router.Route("GET /operations/{key}", lambda.StatusHandler(accepts, lambda.HTTPAPI).Handle)
	return router, nil
}

// rollsOut makes all callers one account, and ignores the order of JSON, in two releases.
func rollsOut(second bool) func(*idem.Options) {
	former, coming := idem.Fingerprint{}, idem.Fingerprint{CanonicalJSON: true}
	return func(o *idem.Options) {
		o.Scope = func(context.Context, *idem.Request) (string, error) { return "account", nil }
		o.Former = &idem.Former{OneScope: true, Claims: !second}
		o.Fingerprint = former
		o.Fingerprint.Known = []idem.Fingerprint{coming}
		if second {
			o.Fingerprint = coming
			o.Fingerprint.Known = []idem.Fingerprint{former}
		}
	}
}

type app struct {
	ledger   string
	provider string
	client   http.Client
}

// input is the body of each request.
type input struct {
	Run    string `json:"run"`
	Amount int    `json:"amount"`
}

// entry is an effect: a new id each time that a phase runs.
type entry struct {
	Run    string `dynamodbav:"run"`
	ID     string `dynamodbav:"id"`
	Kind   string `dynamodbav:"kind"`
	Amount int    `dynamodbav:"amount"`
}

func (a *app) put(in input, kind string) (entry, idem.Write) {
	e := entry{in.Run, rand.Text(), kind, in.Amount}
	return e, dynamo.Put(a.ledger, e)
}

// output is the body of each answer.
type output struct {
	input
	Effect string `json:"effect,omitempty"`
	Charge string `json:"charge,omitempty"`
	More   string `json:"more,omitempty"`
}

func created(out output) (response, error) {
	b, err := json.Marshal(out)
	return response{StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(b)}, err
}

func parse(ev request) (in input, err error) {
	err = json.Unmarshal([]byte(ev.Body), &in)
	return in, err
}

// plain writes with its answer.
func (a *app) plain(ctx context.Context, ev request) (response, error) {
	in, err := parse(ev)
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		e, write := a.put(in, "plain")
		tx.Write(write)
		return created(output{input: in, Effect: e.ID})
	})
}

// moved is plain. It gives a request up that says so.
func (a *app) moved(ctx context.Context, ev request) (response, error) {
	if ev.Headers["x-give-up"] != "" {
		return response{}, errors.New("given up")
	}
	return a.plain(ctx, ev)
}

// large has an answer that doesn't fit into an item, compressed neither.
func (a *app) large(ctx context.Context, ev request) (response, error) {
	in, err := parse(ev)
	if err != nil {
		return response{}, err
	}
	h := fnv.New64a()
	_, _ = io.WriteString(h, in.Run)
	random, more := mathrand.New(mathrand.NewPCG(h.Sum64(), 1)), make([]byte, 450_000)
	for i := range more {
		more[i] = byte(random.Uint32())
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		e, write := a.put(in, "large")
		tx.Write(write)
		return created(output{input: in, Effect: e.ID, More: base64.StdEncoding.EncodeToString(more)})
	})
}

// order is written, then paid, then answered, with a receipt.
func (a *app) order(ctx context.Context, ev request) (response, error) {
	in, err := parse(ev)
	if err != nil {
		return response{}, err
	}
	order, err := idem.Atomic(ctx, "ordered", func(_ context.Context, tx *idem.Tx) (string, error) {
		e, write := a.put(in, "order")
		tx.Write(write)
		return e.ID, nil
	})
	if err != nil {
		return response{}, err
	}
	return a.paid(ctx, in, order, nil)
}

// charge is paid first.
func (a *app) charge(opts ...idem.PhaseOption) func(context.Context, request) (response, error) {
	return func(ctx context.Context, ev request) (response, error) {
		in, err := parse(ev)
		if err != nil {
			return response{}, err
		}
		return a.paid(ctx, in, "", opts)
	}
}

// within is longer than a call is on its way here.
const within = 3 * time.Second

// asks is paid first, by a call that its phase looks up.
func (a *app) asks(path string, opts ...idem.PhaseOption) func(context.Context, request) (response, error) {
	return func(ctx context.Context, ev request) (response, error) {
		in, err := parse(ev)
		if err != nil {
			return response{}, err
		}
		return a.paidBy(ctx, path, in, "", append([]idem.PhaseOption{
			idem.Sends("provider", in.Amount),
			idem.LookUp(func(ctx context.Context, c idem.Call) (id string, found idem.Found, err error) {
				if err = a.post(ctx, "/v1/look", c.Key, in, &id); err != nil || id == "" { //samekey:ignore lookups it only reads
					return "", idem.NotMade, err
				}
				return id, idem.Made, nil
			}, within),
		}, opts...))
	}
}

func (a *app) paid(ctx context.Context, in input, order string, opts []idem.PhaseOption) (response, error) {
	return a.paidBy(ctx, "/v1/charges", in, order, opts)
}

func (a *app) paidBy(ctx context.Context, path string, in input, order string, opts []idem.PhaseOption) (response, error) {
	charge, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (id string, err error) {
		err = a.post(ctx, path, tx.Key("provider"), in, &id)
		return id, err
	}, opts...)
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		e, write := a.put(in, "paid")
		tx.Write(write)
		tx.Stage(idem.NewJob("receipt", in))
		if order == "" {
			order = e.ID
		}
		return created(output{input: in, Effect: order, Charge: charge})
	})
}

// soon is how long after an order its customer is reminded.
const soon = 3 * time.Second

// ship hands long work over, and has its customer reminded later.
func (a *app) ship(ctx context.Context, ev request) (response, error) {
	in, err := parse(ev)
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		e, write := a.put(in, "order")
		at := time.Now().Add(soon)
		remind := idem.NewJob("remind", reminder{in, at.UnixMilli()})
		remind.At = at
		tx.Write(write)
		tx.Stage(idem.NewJob("ship", in), remind)
		return created(output{input: in, Effect: e.ID})
	})
}

// later has its customer reminded later than a queue can hide a ticket.
func (a *app) later(ctx context.Context, ev request) (response, error) {
	in, err := parse(ev)
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		e, write := a.put(in, "order")
		remind := idem.NewJob("remind", in)
		remind.At = time.Now().Add(20 * time.Minute)
		tx.Write(write)
		tx.Stage(remind)
		return created(output{input: in, Effect: e.ID})
	})
}

// reminder is a job that says itself when it may be delivered.
type reminder struct {
	input
	NotBefore int64 `json:"not_before"`
}

// never fails after its first phase. In its first attempt it answers for good, though the
// operation goes on: no client may hear that.
func (a *app) never(ctx context.Context, ev request) (response, error) {
	in, err := parse(ev)
	if err != nil {
		return response{}, err
	}
	if _, err := idem.Atomic(ctx, "ordered", func(_ context.Context, tx *idem.Tx) (string, error) {
		e, write := a.put(in, "order")
		tx.Write(write)
		return e.ID, nil
	}); err != nil {
		return response{}, err
	}
	var id string
	if err := a.post(ctx, "/v1/tries", "", in, &id); err != nil { //samekey:ignore effects the provider counts attempts
		return response{}, err
	}
	if op, ok := idem.FromContext(ctx); ok && !op.TakenOver() {
		return response{StatusCode: http.StatusConflict, Body: "sold out"}, nil
	}
	return response{}, errors.New("never done")
}

// event handles a webhook.
func (a *app) event(ctx context.Context, ev webhook.Event) error {
	var in input
	if err := json.Unmarshal(ev.Body, &in); err != nil {
		return err
	}
	_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
		_, write := a.put(in, "event")
		tx.Write(write)
		return nil, nil
	})
	return err
}

// receive takes a job: it mails, and notes that it did.
func (a *app) receive(ctx context.Context, msg events.SQSMessage) error {
	var in input
	if err := json.Unmarshal([]byte(msg.Body), &in); err != nil {
		return err
	}
	job := msg.MessageAttributes[lambda.KeyAttribute].StringValue
	if job == nil {
		return errors.New("a message without a job's id")
	}
	var id string
	if err := a.post(ctx, "/v1/mails", *job, in, &id); err != nil { //samekey:ignore effects the job's id is the provider's key
		return err
	}
	_, err := idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (any, error) {
		_, write := a.put(in, "receipt")
		tx.Write(write)
		return nil, nil
	})
	return err
}

// post asks the provider for an effect, and reads its id.
func (a *app) post(ctx context.Context, path, key string, in input, id *string) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.provider+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.GetBody = nil // net/http doesn't repeat it then
	req.Header.Set("X-Key", key)
	resp, err := a.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answers %s", resp.Status)
	}
	*id = string(answer)
	return nil
}
