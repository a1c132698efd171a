package lambda_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/asleep"
	"github.com/samekey/samekey/lambda"
)

// Lambda tries an asynchronous event again a minute after a failure, then two minutes after
// the next, and then gives it up. An event whose process dies is done by then, whatever the
// function's time limit is, since a retry waits for the lease in its own time. A caller that
// waits for the answer hears at once that another invocation is at work.
func TestAsynchronousEventSurvivesItsProcess(t *testing.T) {
	t.Parallel()
	const soon = time.Second
	direct := func(optFns ...func(*lambda.DirectOptions[string])) func(*idem.Engine, func() error) func(context.Context) error {
		return func(e *idem.Engine, work func() error) func(context.Context) error {
			h := lambda.Wrap(e, lambda.Direct[string, string](func(s string) (string, error) { return s, nil }, optFns...),
				func(context.Context, string) (string, error) { return "", work() })
			return func(ctx context.Context) error { _, err := h.Handle(ctx, "1"); return err }
		}
	}
	sources := map[string]func(*idem.Engine, func() error) func(context.Context) error{
		"SNS": func(e *idem.Engine, work func() error) func(context.Context) error {
			h := lambda.WrapEach(e, lambda.SNS, func(context.Context, events.SNSEventRecord) error { return work() })
			ev := events.SNSEvent{Records: []events.SNSEventRecord{{EventSource: "aws:sns", SNS: events.SNSEntity{MessageID: "m", TopicArn: "arn:aws:sns:eu-central-1:1:t", Message: "{}"}}}}
			return func(ctx context.Context) error { _, err := h.Handle(ctx, ev); return err }
		},
		"S3": func(e *idem.Engine, work func() error) func(context.Context) error {
			h := lambda.WrapEach(e, lambda.S3, func(context.Context, events.S3EventRecord) error { return work() })
			ev := events.S3Event{Records: []events.S3EventRecord{{EventSource: "aws:s3", EventName: "ObjectCreated:Put", S3: events.S3Entity{
				Bucket: events.S3Bucket{Name: "b"}, Object: events.S3Object{Key: "o", Sequencer: "1"},
			}}}}
			return func(ctx context.Context) error { _, err := h.Handle(ctx, ev); return err }
		},
		"EventBridge": func(e *idem.Engine, work func() error) func(context.Context) error {
			h := lambda.WrapEach(e, lambda.EventBridge, func(context.Context, events.EventBridgeEvent) error { return work() })
			ev := events.EventBridgeEvent{ID: "1", Source: "rides", DetailType: "Ride", AccountID: "1", Region: "eu-central-1"}
			return func(ctx context.Context) error { _, err := h.Handle(ctx, ev); return err }
		},
		"Direct":              direct(),
		"Direct, synchronous": direct(func(o *lambda.DirectOptions[string]) { o.Synchronous = true }),
	}
	for name, tc := range map[string]struct {
		dies  time.Duration // after it began
		limit time.Duration
		by    time.Duration // the event is done, at the latest
	}{
		"a short limit":   {soon, 30 * time.Second, 2 * time.Minute},
		"a long limit":    {soon, 5 * time.Minute, 6 * time.Minute},
		"the longest":     {soon, 15 * time.Minute, 16 * time.Minute},
		"late in its run": {14 * time.Minute, 15 * time.Minute, 16 * time.Minute},
	} {
		for source, handler := range sources {
			t.Run(source+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					gone, done, began := make(chan struct{}), time.Duration(0), time.Now()
					var dies atomic.Bool
					dies.Store(true)
					defer synctest.Wait()
					defer close(gone)
					engine := anEngine(func(o *idem.Options) { o.Retention = 30 * 24 * time.Hour })
					invoke := handler(engine, func() error {
						if dies.Load() {
							<-gone // the process died
							return errors.New("too late")
						}
						done = time.Since(began)
						return nil
					})
					attempt := func() error {
						ctx, cancel := context.WithTimeout(lambdacontext.NewContext(asleep.With(t.Context()), &lambdacontext.LambdaContext{}), tc.limit)
						defer cancel()
						return invoke(ctx)
					}
					go func() { _ = attempt() }()
					time.Sleep(tc.dies) //nolint:forbidigo // virtual
					dies.Store(false)
					time.Sleep(time.Minute) //nolint:forbidigo // virtual
					retried := time.Now()
					err := attempt()
					if source == "Direct, synchronous" {
						if waited := time.Since(retried); tc.limit > 2*time.Minute && (waited > soon || !errors.Is(err, idem.ErrInFlight)) {
							t.Errorf("waited %v, got %v", waited, err)
						}
						return
					}
					if err != nil {
						time.Sleep(2 * time.Minute) //nolint:forbidigo // virtual
						err = attempt()
					}
					if err != nil || done == 0 || done > tc.by {
						t.Errorf("done after %v, %v; want by %v", done, err, tc.by)
					}
				})
			})
		}
	}
}

// A caller with a client context waits for the answer: Lambda passes it to no asynchronous
// invocation.
func TestClientContextIsOfACallerWhoWaits(t *testing.T) {
	t.Parallel()
	adapter := lambda.Direct[string, string](func(s string) (string, error) { return s, nil })
	for want, lc := range map[bool]*lambdacontext.LambdaContext{
		true: {}, false: {ClientContext: lambdacontext.ClientContext{Custom: map[string]string{"tool": "pay"}}},
	} {
		if req, err := adapter.Request(lambdacontext.NewContext(t.Context(), lc), "1"); err != nil || req.Asynchronous != want {
			t.Errorf("%+v: asynchronous %v, %v; want %v", lc, req.Asynchronous, err, want)
		}
	}
}
