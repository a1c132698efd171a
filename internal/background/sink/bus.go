package sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/lambda"
)

// BusAPI is the part of *eventbridge.Client that a [Bus] uses.
type BusAPI interface {
	// DescribeEventBus shows whether the bus exists.
	DescribeEventBus(context.Context, *eventbridge.DescribeEventBusInput, ...func(*eventbridge.Options)) (*eventbridge.DescribeEventBusOutput, error)
	PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

var _ BusAPI = (*eventbridge.Client)(nil)

// Bus puts jobs on an EventBridge bus. An event's detail-type is the job's kind. The
// event's detail is a lambda.JobEvent whose key is the job's id. The key isn't the
// event's own id, because each delivery of the job makes an event with a new id.
//
// If a bus doesn't exist, PutEvents still reports success. So a process checks before
// its first delivery that the bus exists (events:DescribeEventBus). Until a check has
// succeeded, the sink is unavailable. If the process has no permission to check, the
// sink sends jobs anyway. The sink doesn't check the bus named "default", which every
// account has.
type Bus struct {
	batcher
	api  BusAPI
	name string

	mu    sync.Mutex
	known bool // the bus exists, or the process has no permission to check
}

// NewBus returns a sink to an EventBridge bus. The parameter bus is the bus's name or
// ARN. The parameter source is the Source of the sink's events. NewBus panics if api is
// nil, or if bus or source is empty.
func NewBus(api BusAPI, bus, source string) *Bus {
	if api == nil || bus == "" || source == "" {
		panic("sink: NewBus: api is nil, or bus or source is empty") //nolint:forbidigo // a mistake in the program
	}
	size := func(d jobs.Delivery) int { return len(payload(d)) + len(source) + len(d.Kind) }
	return &Bus{api: api, name: bus, batcher: batcher{service: buses, size: size, call: func(ctx context.Context, batch []jobs.Delivery) (results, error) {
		in := &eventbridge.PutEventsInput{Entries: make([]types.PutEventsRequestEntry, len(batch))}
		for i, d := range batch {
			in.Entries[i] = types.PutEventsRequestEntry{
				EventBusName: &bus, Source: &source, DetailType: aws.String(d.Kind), Detail: aws.String(string(payload(d))),
			}
		}
		out, err := api.PutEvents(ctx, in)
		if err != nil {
			return nil, err
		}
		errs := unanswered(len(batch))
		for i, e := range out.Entries[:min(len(out.Entries), len(batch))] { // the answer's entries are in the order of the request
			if e.ErrorCode == nil {
				errs[i] = nil
			} else {
				errs[i] = entryFault(*e.ErrorCode, aws.ToString(e.ErrorMessage), true)
			}
		}
		return errs, nil
	}}}
}

// Deliver implements [jobs.Sink] with up to ten jobs a call.
func (b *Bus) Deliver(ctx context.Context, batch []jobs.Delivery) []error {
	if err := b.exists(ctx); err != nil {
		return slices.Repeat([]error{fmt.Errorf("%s: %w: bus %s: %w", b.service.name, jobs.ErrSinkDown, b.name, err)}, len(batch))
	}
	return b.deliver(ctx, batch)
}

// Bus.exists returns nil if the bus exists, or if the process has no permission to
// check.
func (b *Bus) exists(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known || b.name == "default" {
		return nil
	}
	_, err := b.api.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: &b.name})
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "AccessDeniedException" {
		err = nil
	}
	b.known = err == nil
	return err
}

// payload returns a job as a lambda.JobEvent, or nil if the job's Args aren't JSON.
func payload(d jobs.Delivery) []byte {
	b, err := json.Marshal(lambda.JobEvent{
		Key: d.JobID, Operation: d.Operation, Kind: d.Kind, Args: d.Args, Traceparent: d.Trace.Parent, Tracestate: d.Trace.State,
	})
	if err != nil {
		return nil // a Bus then sends an event without a detail, and EventBridge refuses the event
	}
	return b
}
