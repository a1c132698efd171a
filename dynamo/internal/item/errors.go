package item

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/idem/store"
)

// refused reports whether an error proves that nothing was written, and that another try
// won't help.
func refused(code string) bool {
	switch code {
	case "AccessDeniedException",
		"ExpiredTokenException",
		"IncompleteSignatureException",
		"InvalidSignatureException",
		"ItemCollectionSizeLimitExceeded",
		"MissingAuthenticationTokenException",
		"ResourceNotFoundException",
		"UnrecognizedClientException",
		"ValidationException",
		"KMSAccessDeniedException",
		"KMSDisabledException",
		"KMSInvalidStateException",
		"KMSNotFoundException":
		return true
	}
	return false
}

// Invalid reports whether the service found a request malformed.
func Invalid(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ValidationException"
}

// NoIndex reports whether a query failed because its index isn't there, or is still
// being built. The service has no other code for that than for a malformed request.
func NoIndex(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ValidationException" &&
		(strings.Contains(api.ErrorMessage(), "does not have the specified index") || strings.Contains(api.ErrorMessage(), "backfilling"))
}

// TooLarge reports whether the service's message says that an item is over its limit. The
// service has no code for that.
func TooLarge(message string) bool {
	return strings.Contains(message, "Item size") && strings.Contains(message, "exceeded")
}

// WriteError translates the error of a write. held is the record that refused the
// write; only in that case err is nil.
//
// Every error that isn't a certain refusal is unknown: a throttled last attempt may
// follow an attempt whose answer was lost.
func WriteError(op string, err error) (held *store.Record, _ error) {
	return writeError(op, err, Decode)
}

// WriteErrorGlance is WriteError with a glance at the record.
func WriteErrorGlance(op string, err error) (held *store.Record, _ error) {
	return writeError(op, err, Glance)
}

func writeError(op string, err error, decode func(Map) (*store.Record, error)) (held *store.Record, _ error) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		if len(failed.Item) == 0 {
			return &store.Record{}, nil
		}
		return decode(failed.Item)
	}
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return nil, fmt.Errorf("dynamo: %s: %w: %w", op, store.ErrConflict, err)
	}
	if _, ok := errors.AsType[*types.ReplicatedWriteConflictException](err); ok {
		return nil, fmt.Errorf("dynamo: %s: %w: %w", op, store.ErrConflict, err)
	}
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case Invalid(err) && TooLarge(api.ErrorMessage()):
		return nil, fmt.Errorf("dynamo: %s: %w: %w", op, store.ErrTooLarge, err)
	case ok && refused(api.ErrorCode()):
		return nil, fmt.Errorf("dynamo: %s: %w", op, err)
	}
	return nil, fmt.Errorf("dynamo: %s: %w: %w", op, store.ErrUnknown, err)
}

// ReadError wraps the error of a read.
func ReadError(op string, err error) error { return fmt.Errorf("dynamo: %s: %w", op, err) }

// faultOf returns the kind of an error that says more than that the outcome is unknown. The
// names without "Exception" are those in a transaction's reasons.
func faultOf(code string) (_ store.Fault, known bool) {
	switch code {
	case "ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", "ThrottlingException", "ThrottlingError", "RequestLimitExceeded":
		return store.Throttled, true
	case "TransactionConflictException", "TransactionConflict", "TransactionInProgressException", "DuplicateItem", "ReplicatedWriteConflictException":
		return store.Conflict, true
	case "ValidationException", "ValidationError", "ItemCollectionSizeLimitExceeded", "ResourceNotFoundException":
		return store.Invalid, true
	case "ConditionalCheckFailedException", "ConditionalCheckFailed":
		return store.NoFault, true
	}
	return store.NoFault, false
}

// FaultOf returns the kind of a call's error; NoFault for nil and for a refused
// condition.
func FaultOf(err error) store.Fault {
	if err == nil {
		return store.NoFault
	}
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && len(cancelled.CancellationReasons) > 0 {
		return cancelledFor(cancelled.CancellationReasons)
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return store.Unknown
	}
	if fault, known := faultOf(api.ErrorCode()); known {
		return fault
	}
	if refused(api.ErrorCode()) {
		return store.Denied
	}
	return store.Unknown
}

// cancelledFor returns the first fault among the reasons of a transaction.
func cancelledFor(reasons []types.CancellationReason) store.Fault {
	for _, r := range reasons {
		if fault, _ := faultOf(aws.ToString(r.Code)); fault != store.NoFault {
			return fault
		}
	}
	return store.NoFault
}
