package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"

	"github.com/samekey/samekey/proof/prove/fault"
)

// inMemory is Rocket Rides in memory, with the concurrency of its functions.
type inMemory struct {
	mu          sync.Mutex
	concurrency map[string]int32
	loop        lambdatypes.RecursiveLoop
	refuse      func(n int) error // the nth call
	calls       int
	bug         string
	booked      map[string]string // rides, by key
	items       map[string][]map[string]types.AttributeValue

	abandoned
	heard    map[string]string // answers, by key and body
	swept    bool
	sweeps   int
	page     int // items of a scan's page; 0: all
	hidden   []time.Duration
	began    time.Time
	parked   bool
	refused  time.Time
	poisoned time.Time
	starts   int
	measured fault.Figures
	givenUp  [][]byte
}

func newInMemory() *inMemory {
	return &inMemory{began: time.Now(), concurrency: map[string]int32{"booker": 10, "worker": 5}, booked: map[string]string{}, heard: map[string]string{}, items: map[string][]map[string]types.AttributeValue{}}
}

func (m *inMemory) place() *Place {
	cfg := aws.Config{
		Region: "eu-west-1", Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1,
		APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("in memory", func(ctx context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
				if err := ctx.Err(); err != nil {
					return middleware.InitializeOutput{}, middleware.Metadata{}, err
				}
				m.take(in.Parameters)
				out, err := m.answer(in.Parameters)
				return middleware.InitializeOutput{Result: out}, middleware.Metadata{}, err
			}), middleware.After)
		}},
	}
	meter := &meter{}
	meter.begin(throttled().Cost)
	cfg = metered(cfg, meter)
	return &Place{
		API: "https://api", HTTP: &http.Client{Transport: m}, Timeout: 5 * time.Second, meter: meter, DB: dynamodb.NewFromConfig(cfg), Lambda: lambda.NewFromConfig(cfg),
		Booker: "booker", Worker: "worker", Plain: "plain", Rides: "rides", Audit: "audit", Provider: "provider", Records: "records", Stack: "samekey-prove-a", Swept: 60,
		GivenUp: func(context.Context) ([][]byte, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.deliver()
			if err := m.fails(); err != nil || time.Since(m.poisoned) < time.Minute {
				return nil, err
			}
			return m.givenUp, nil
		},
		Hidden: func(context.Context) (int, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.hidden = append(m.hidden, time.Since(m.began))
			if m.bug == "a ticket that isn't in flight" {
				return 0, m.fails()
			}
			return 1, m.fails()
		},
	}
}

func (m *inMemory) answer(in any) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fails(); err != nil {
		return nil, err
	}
	switch in := in.(type) {
	case *lambda.GetFunctionRecursionConfigInput:
		return &lambda.GetFunctionRecursionConfigOutput{RecursiveLoop: m.loop}, nil
	case *lambda.GetFunctionConcurrencyInput:
		return &lambda.GetFunctionConcurrencyOutput{ReservedConcurrentExecutions: aws.Int32(m.concurrency[*in.FunctionName])}, nil
	case *lambda.PutFunctionConcurrencyInput:
		m.concurrency[*in.FunctionName] = *in.ReservedConcurrentExecutions
		return &lambda.PutFunctionConcurrencyOutput{}, nil
	case *dynamodb.ScanInput:
		m.deliver()
		if !aws.ToBool(in.ConsistentRead) {
			return &dynamodb.ScanOutput{}, nil
		}
		if *in.TableName == "provider" && (m.bug == "neither a list nor a look" || m.bug == "no look after a sweep" && m.sweeps > 0) {
			return nil, refusal("AccessDenied", "no")
		}
		out := &dynamodb.ScanOutput{Items: m.matching(in)}
		if from := text(in.ExclusiveStartKey["pk"]); m.page > 0 {
			at, _ := strconv.Atoi(from)
			if end := at + m.page; end < len(out.Items) {
				out.LastEvaluatedKey = keyOf(strconv.Itoa(end))
			}
			out.Items = out.Items[at:min(at+m.page, len(out.Items))]
		}
		return out, nil
	}
	return m.more(in)
}

func (m *inMemory) fails() error {
	m.calls++
	if m.refuse == nil {
		return nil
	}
	return m.refuse(m.calls)
}

// deliver is the worker.
func (m *inMemory) deliver() {
	m.come()
	if m.concurrency["worker"] == 0 && m.bug != "a worker that runs" || m.bug == "a lost job" || !m.work() {
		return
	}
	for key, ride := range m.booked {
		if m.bug == "a lost neighbour" && strings.Contains(key, "neighbour-3") {
			continue
		}
		delete(m.booked, key)
		m.record(key, "done", "")
		m.put("provider", "mail#"+ride, map[string]string{"about": ride})
		if m.bug == "a job delivered twice" {
			m.put("provider", "mail#again"+ride, map[string]string{"about": ride})
		}
	}
}

func (m *inMemory) put(table, id string, more map[string]string) {
	item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}
	for name, value := range more {
		item[name] = &types.AttributeValueMemberS{Value: value}
	}
	m.items[table] = append(m.items[table], item)
}

// RoundTrip is the API.
func (m *inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.concurrency["booker"] == 0 && m.bug != "an API that runs" {
		if m.bug == "a refused request that runs" {
			m.book(r, "ghost")
		}
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	}
	resp := m.serve(r)
	switch {
	case m.bug == "a line that breaks" && resp.StatusCode == http.StatusBadGateway:
		return nil, errors.New("connection reset by peer")
	case m.bug == "a torn replay" && resp.Header.Get("Replayed") != "":
		resp.Body = io.NopCloser(io.MultiReader(resp.Body, iotest.ErrReader(errors.New("half an answer"))))
	}
	return resp, nil
}

func (m *inMemory) book(r *http.Request, ride string) {
	raw, _ := io.ReadAll(r.Body)
	m.ride(r.Header.Get("Idempotency-Key"), ride, latitudeIn(raw))
}

func latitudeIn(body []byte) string {
	at, _, _ := strings.Cut(strings.TrimPrefix(string(body), `{"origin_lat":`), ",")
	return at
}

// ride books one, with all its effects but the mail.
func (m *inMemory) ride(key, ride, at string) {
	m.put("rides", ride, map[string]string{"origin_lat": at, "charge_id": "ch"})
	m.items["audit"] = append(m.items["audit"], map[string]types.AttributeValue{"data": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"origin_lat": &types.AttributeValueMemberN{Value: at}}}})
	charge := func() { m.put("provider", "charge#"+ride, map[string]string{"about": "Ride " + ride, "made": "ch"}) }
	if m.bug == "a late charge" {
		time.AfterFunc(4500*time.Millisecond, func() { m.mu.Lock(); defer m.mu.Unlock(); charge() })
	} else {
		charge()
	}
	m.record(key, "done", "jobs")
	m.booked[key] = ride
}

// What a throttle loses or doubles fails the claim, what isn't throttled shows nothing, and the functions have their
// concurrency back, wherever the run is ended or refused.
func TestThrottled(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]Status{
		"": Passed, "a lost job": Failed, "a job delivered twice": Failed, "a refused request that runs": Failed, "an API that runs": NotShown, "a worker that runs": NotShown,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newInMemory()
			m.bug = bug
			p := m.place()
			figure, err := examineThrottled(t.Context(), p)
			r := throttled().judge(p, figure, err)
			if r.Status != want || r.Status == Passed && !throttled().figure().MatchString(r.Figure) {
				t.Errorf("%q: %+v", bug, r)
			}
			m.whole(t, bug)
		})
	}
	for n := 1; n <= 30; n++ { // more than a whole run makes
		for name, refusal := range map[string]error{"ended": nil, "lost": errors.New("connection reset by peer")} {
			synctest.Test(t, func(t *testing.T) {
				m := newInMemory()
				ctx, end := context.WithCancel(t.Context())
				defer end()
				m.refuse = func(i int) error {
					if i == n && refusal == nil {
						end()
					}
					if i >= n && i < n+3 {
						return refusal
					}
					return nil
				}
				p := m.place()
				figure, err := examineThrottled(ctx, p)
				if r := throttled().judge(p, figure, err); r.Status == Failed {
					t.Errorf("%s at call %d: %+v", name, n, r)
				}
				m.whole(t, fmt.Sprint(name, " at call ", n))
			})
		}
	}
	synctest.Test(t, func(t *testing.T) {
		m := newInMemory()
		m.concurrency["booker"] = 0
		if _, err := examineThrottled(t.Context(), m.place()); !dark(err) {
			t.Errorf("a function without a reserved concurrency: %v", err)
		}
	})
}

// whole wants the concurrency of all functions back.
func (m *inMemory) whole(t *testing.T, name string) {
	t.Helper()
	if !maps.Equal(m.concurrency, map[string]int32{"booker": 10, "worker": 5}) {
		t.Errorf("%q leaves %v", name, m.concurrency)
	}
}

// A worker that may loop fails the claim about its recursion config.
func TestRecursion(t *testing.T) {
	t.Parallel()
	for loop, want := range map[lambdatypes.RecursiveLoop]Status{lambdatypes.RecursiveLoopTerminate: Passed, lambdatypes.RecursiveLoopAllow: Failed, "": Failed} {
		m := newInMemory()
		m.loop = loop
		p := m.place()
		figure, err := examineRecursion(t.Context(), p)
		if r := probes()[0].judge(p, figure, err); r.Name != "probe.recursion" || r.Status != want {
			t.Errorf("%s: %+v", loop, r)
		}
	}
	m := newInMemory()
	m.refuse = func(int) error { return refusal("AccessDenied", "no") }
	if _, err := examineRecursion(t.Context(), m.place()); !dark(err) {
		t.Errorf("a denied call: %v", err)
	}
}

// A ticket that waits without being in flight fails its claim. SQS may take a minute until it counts one.
func TestInFlight(t *testing.T) {
	t.Parallel()
	looks := func(pattern string) (all []bool) {
		for _, c := range pattern {
			all = append(all, c == '1')
		}
		return all
	}
	for pattern, want := range map[string]struct {
		status Status
		figure string
	}{
		"":                 {NotShown, ""},
		"000000000000":     {NotShown, ""},
		"0000000000000":    {Failed, ""},
		"111111111111":     {Passed, "seen after 0 s, then at 12 of 12 looks"},
		"0000000000001101": {Passed, "seen after 60 s, then at 3 of 4 looks"},
		"0100":             {Failed, ""},
		"0110":             {Passed, "seen after 5 s, then at 2 of 3 looks"},
		"10":               {Passed, "seen after 0 s, then at 1 of 2 looks"},
		"1111111111111":    {Passed, "seen after 0 s, then at 13 of 13 looks"},
	} {
		figure, err := examineInFlight(t.Context(), &Place{looks: looks(pattern)})
		c := probes()[2]
		r := c.judge(&Place{}, figure, err)
		if r.Name != "probe.in-flight" || r.Status != want.status || r.Figure != want.figure || r.Status == Passed && !c.figure().MatchString(r.Figure) {
			t.Errorf("%s: %+v", pattern, r)
		}
	}
}

// While a ticket waits, the queue is asked every five seconds, and what it says is judged.
func TestLooks(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]string{
		"": "<nil> seen after 0 s, then at 19 of 19 looks <nil>, from 9s", "a ticket that isn't in flight": "<nil>  at none of 19 looks, from 9s",
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newInMemory()
			m.bug = bug
			p := m.place()
			p.Timeout = localTimeout
			p.meter.begin(probes()[1].Cost)
			_, err := examineWaitingTicket(t.Context(), p)
			figure, differs := examineInFlight(t.Context(), p)
			if got := fmt.Sprintf("%v %s %v, from %s", err, figure, differs, m.hidden[0]); got != want {
				t.Errorf("%q: %s", bug, got)
			}
		})
	}
	m := newInMemory()
	p := m.place()
	p.Hidden = func(context.Context) (int, error) { return 1, errors.New("no") }
	if err := p.askQueue(t.Context()); err == nil || p.looks != nil {
		t.Error(err, p.looks)
	}
}

// A queue is asked for its messages in flight.
func TestHidden(t *testing.T) {
	t.Parallel()
	refused := refusal("AccessDenied", "no")
	for want, err := range map[string]error{"3 <nil>": nil, "0 AccessDenied: no": refused} {
		client := sqs.NewFromConfig(aws.Config{Region: "eu-west-1", APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("queue", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (out middleware.InitializeOutput, meta middleware.Metadata, _ error) {
				all := map[string]string{}
				for _, name := range in.Parameters.(*sqs.GetQueueAttributesInput).AttributeNames {
					all[string(name)] = map[string]string{"ApproximateNumberOfMessagesNotVisible": "3"}[string(name)]
				}
				out.Result = &sqs.GetQueueAttributesOutput{Attributes: all}
				return out, meta, err
			}), middleware.After)
		}}})
		n, got := hidden(t.Context(), client, "https://queue")
		if got := fmt.Sprint(n, " ", got); got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
}
