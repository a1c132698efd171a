package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
)

const maxAttempts = 6

// retryer repeats a failed call after a short delay, even if the call's answer was cut
// off. The SDK's retryer waits 1 s on average before it repeats a call for the first
// time, and it doesn't repeat a call whose answer was cut off.
type retryer struct{ *retry.Standard }

func newRetryer() aws.RetryerV2 {
	return retryer{retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = maxAttempts
		o.RateLimiter = ratelimit.None // the SDK's limit isn't needed, because the engine limits the time of its calls
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return item.BackOff(context.Background(), attempt), nil
		})
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(told)}, append(o.Retryables, retry.IsErrorRetryableFunc(torn))...)
	})}
}

// told(err) decides whether the SDK repeats the failed call: yes after throttling, no
// after a refusal for good. For any other error, the checks after told decide. told is
// the first check, because the SDK's own checks of a refused claim would take a tenth
// of a replay's processor time.
func told(err error) aws.Ternary {
	switch item.FaultOf(err) {
	case "", store.Denied, store.Invalid:
		return aws.FalseTernary
	case store.Throttled:
		return aws.TrueTernary
	case store.Conflict, store.Unknown:
	}
	return aws.UnknownTernary
}

// torn(err) tells the SDK to repeat a call whose answer was cut off, although the service may have
// applied the write.
func torn(err error) aws.Ternary {
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

var errPastDeadline = fmt.Errorf("dynamo: %w by the wall clock: the sandbox was frozen", context.DeadlineExceeded)

// GetAttemptToken returns an error if the wall clock is past the context's deadline.
// The SDK calls GetAttemptToken each time before it sends a call. While a sandbox is
// frozen, the context's timer stops, so the SDK could send a claim again an hour later.
// Such a late claim could revive an operation whose key has been freed since.
func (r retryer) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	if item.Overdue(ctx) {
		return nil, errPastDeadline
	}
	return r.Standard.GetAttemptToken(ctx)
}
