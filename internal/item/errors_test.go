package item

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/chance"
)

// What each of the service's errors says: of a write whether it may have been made, and of a
// call what went wrong.
func TestErrorsOfTheService(t *testing.T) {
	t.Parallel()
	coded := func(code string) error { return fmt.Errorf("x: %w", &smithy.GenericAPIError{Code: code, Message: "m"}) }
	for code, tt := range map[string]struct {
		write error
		fault store.Fault
	}{
		"AccessDeniedException": {store.ErrRefused, store.Denied}, "ExpiredTokenException": {store.ErrRefused, store.Denied}, "IncompleteSignatureException": {store.ErrRefused, store.Denied},
		"InvalidSignatureException": {store.ErrRefused, store.Denied}, "MissingAuthenticationTokenException": {store.ErrRefused, store.Denied}, "UnrecognizedClientException": {store.ErrRefused, store.Denied},
		"KMSAccessDeniedException": {store.ErrRefused, store.Denied}, "KMSDisabledException": {store.ErrRefused, store.Denied}, "KMSInvalidStateException": {store.ErrRefused, store.Denied}, "KMSNotFoundException": {store.ErrRefused, store.Denied},
		"ItemCollectionSizeLimitExceeded": {store.ErrRefused, store.Invalid}, "ResourceNotFoundException": {store.ErrRefused, store.Invalid}, "ValidationException": {store.ErrRefused, store.Invalid},
		"ProvisionedThroughputExceededException": {store.ErrUnknown, store.Throttled}, "ThrottlingException": {store.ErrUnknown, store.Throttled},
		"ThrottlingError": {store.ErrUnknown, store.Throttled}, "RequestLimitExceeded": {store.ErrUnknown, store.Throttled},
		"TransactionInProgressException": {store.ErrUnknown, store.Conflict},
		"InternalServerError":            {store.ErrUnknown, store.Unknown}, "Anything": {store.ErrUnknown, store.Unknown},
	} {
		held, err := WriteError("claim", coded(code))
		if held != nil || !errors.Is(err, tt.write) || store.Passing(err) != errors.Is(tt.write, store.ErrUnknown) {
			t.Errorf("%s: %+v, %v, want %v", code, held, err, tt.write)
		}
		if err := ReadError("load", coded(code)); errors.Is(err, store.ErrRefused) != errors.Is(tt.write, store.ErrRefused) {
			t.Errorf("a read, %s: %v, want it to be refused as a write is: %v", code, err, tt.write)
		}
		if got := FaultOf(coded(code)); got != tt.fault {
			t.Errorf("%s: the fault is %v, want %v", code, got, tt.fault)
		}
	}
	for name, tt := range map[string]struct{ err, want error }{
		"a transaction on the record": {&types.TransactionConflictException{}, store.ErrConflict},
		"a write in another Region":   {&types.ReplicatedWriteConflictException{}, store.ErrConflict},
		"an item that is too large":   {&smithy.GenericAPIError{Code: "ValidationException", Message: "Item size has exceeded the maximum allowed size"}, store.ErrTooLarge},
		"no answer":                   {errors.New("reset"), store.ErrUnknown},
	} {
		if _, err := WriteError("claim", tt.err); !errors.Is(err, tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "Item size has exceeded"}
	if _, err := WriteError("claim", denied); err == nil || errors.Is(err, store.ErrTooLarge) {
		t.Errorf("what isn't allowed is too large: %v", err)
	}
	for message, want := range map[string]bool{"Item size to update has exceeded the maximum allowed size": true, "Item size is fine": false, "a limit was exceeded": false} {
		if got := TooLarge(message); got != want {
			t.Errorf("%q says too large: %v", message, got)
		}
	}
}

// A write that was refused shows the record that refused it.
func TestWriteThatIsRefused(t *testing.T) {
	t.Parallel()
	if held, err := WriteError("claim", &types.ConditionalCheckFailedException{}); err != nil || held == nil || held.ID != "" {
		t.Errorf("without a record: %+v, %v", held, err)
	}
	it := encoded(&store.Record{PK: "v1##x", State: store.Done, Owner: "o", Ver: 1, Fingerprint: "f", ID: "i", Keep: "", Expires: testEnd, Created: testEnd, Run: testEnd, Response: &store.Response{Status: 200, Body: []byte("b")}})
	failed := &types.ConditionalCheckFailedException{Item: it}
	if held, err := WriteError("claim", failed); err != nil || held.ID != "i" || string(held.Response.Body) != "b" {
		t.Errorf("with a record: %+v, %v", held, err)
	}
	if held, err := WriteErrorGlance("claim", failed); err != nil || held.ID != "i" || held.Response.Body != nil {
		t.Errorf("at a glance: %+v, %v", held, err)
	}
}

// The fault of a call: of a transaction that was cancelled the first among its reasons.
func TestFaultOfACall(t *testing.T) {
	t.Parallel()
	reasons := func(codes ...string) error {
		e := &types.TransactionCanceledException{}
		for _, c := range codes {
			e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(c)})
		}
		return e
	}
	for name, tt := range map[string]struct {
		err  error
		want store.Fault
	}{
		"none":                  {nil, ""},
		"not of the service":    {errors.New("x"), store.Unknown},
		"a refused condition":   {&types.ConditionalCheckFailedException{}, ""},
		"a refused transaction": {reasons("None", "ConditionalCheckFailed"), ""},
		"throttled":             {reasons("None", "ProvisionedThroughputExceeded"), store.Throttled},
		"throttled, too":        {reasons("ThrottlingError"), store.Throttled},
		"in conflict":           {reasons("ConditionalCheckFailed", "TransactionConflict", "ThrottlingError"), store.Conflict},
		"a duplicate":           {reasons("DuplicateItem"), store.Conflict},
		"invalid":               {reasons("ValidationError"), store.Invalid},
		"without reasons":       {reasons(), store.Unknown},
		"a conflict":            {&types.TransactionConflictException{}, store.Conflict},
		"another Region":        {&types.ReplicatedWriteConflictException{}, store.Conflict},
	} {
		if got := FaultOf(tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	for code, want := range map[string][2]bool{"ValidationException": {true, true}, "AccessDeniedException": {false, false}} {
		for _, message := range []string{"The table does not have the specified index: waiting", "Cannot read from backfilling global secondary index: waiting"} {
			err := &smithy.GenericAPIError{Code: code, Message: message}
			if Invalid(err) != want[0] || NoIndex(err) != want[1] {
				t.Errorf("%s: %s: invalid %v, no index %v", code, message, Invalid(err), NoIndex(err))
			}
		}
	}
	if Invalid(errors.New("x")) || NoIndex(errors.New("x")) || NoIndex(&smithy.GenericAPIError{Code: "ValidationException", Message: "x"}) {
		t.Error("any error is one about the index")
	}
}

// The wait before a request is sent again doubles up to a second, and ends with the context.
func TestPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		most := int64(0)
		longest := chance.With(t.Context(), func(n int64) int64 { most = n; return n - 1 })
		for round, want := range map[int]time.Duration{0: 20 * time.Millisecond, 1: 40 * time.Millisecond, 5: 640 * time.Millisecond, 6: time.Second, 11: time.Second, 1000: time.Second} {
			began := time.Now()
			if !Pause(longest, round) || time.Duration(most) != want || time.Since(began) != want-1 {
				t.Errorf("round %d: waited %v of %v, want %v", round, time.Since(began), time.Duration(most), want)
			}
		}
		ended, cancel := context.WithTimeout(longest, 100*time.Millisecond)
		defer cancel()
		if Pause(ended, 6) {
			t.Error("it goes on after its context")
		}
		if w := BackOff(t.Context(), 3); w < 0 || w >= 160*time.Millisecond {
			t.Errorf("waits %v", w)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if Overdue(t.Context()) || Overdue(soon) {
			t.Error("overdue before its end")
		}
		time.Sleep(time.Second + 1) //nolint:forbidigo // virtual
		if !Overdue(soon) {
			t.Error("not overdue after its end")
		}
	})
}

var testEnd = time.Unix(1<<31, 0)
