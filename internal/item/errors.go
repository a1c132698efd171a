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

// outcome is the meaning of an error code of the service.
type outcome struct {
	fault store.Fault // kind of the call's failure
	write error       // meaning for a write: ErrRefused (final), ErrConflict (try again) or ErrUnknown
}

// outcomes is the only table of the service's error codes. It is a function, because a
// variable would be made at each cold start. Codes without "Exception" are reasons of a
// cancelled transaction, except RequestLimitExceeded, which is the error of a call. A
// code that isn't in the table has the outcome unknown.
func outcomes(code string) (_ outcome, known bool) {
	switch code {
	case "AccessDeniedException", "ExpiredTokenException", "IncompleteSignatureException", "InvalidSignatureException",
		"MissingAuthenticationTokenException", "UnrecognizedClientException",
		"KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException":
		return outcome{store.Denied, store.ErrRefused}, true
	case "ItemCollectionSizeLimitExceeded", "ResourceNotFoundException", "ValidationException", "ValidationError":
		return outcome{store.Invalid, store.ErrRefused}, true
	case "ProvisionedThroughputExceededException", "ProvisionedThroughputExceeded", "RequestLimitExceeded", "ThrottlingError", "ThrottlingException":
		// The refused try wrote nothing. But the SDK's client may have tried before: an earlier try
		// may have written, and the answer to that try may be lost.
		return outcome{store.Throttled, store.ErrUnknown}, true
	case "DuplicateItem", "ReplicatedWriteConflictException", "TransactionConflict", "TransactionConflictException":
		return outcome{store.Conflict, store.ErrConflict}, true
	case "TransactionInProgressException": // an earlier copy of the request is at work, and may still be applied
		return outcome{store.Conflict, store.ErrUnknown}, true
	case "ConditionalCheckFailed", "ConditionalCheckFailedException":
		return outcome{}, true
	}
	return outcome{store.Unknown, store.ErrUnknown}, false
}

// outcomeOf returns the outcome of an error. An error without a code (no connection, no
// answer in time) has the outcome unknown. A cancelled transaction has the outcome of
// the first reason that is in the table and isn't a failed condition. If there is no
// such reason, the outcome is empty.
func outcomeOf(err error) outcome {
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok && len(cancelled.CancellationReasons) > 0 {
		for _, r := range cancelled.CancellationReasons {
			if o, known := outcomes(aws.ToString(r.Code)); known && o.fault != "" {
				return o
			}
		}
		return outcome{}
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		o, _ := outcomes(api.ErrorCode())
		return o
	}
	return outcome{store.Unknown, store.ErrUnknown}
}

// FaultOf returns the kind of a call's error; "" for nil and for a failed condition.
func FaultOf(err error) store.Fault {
	if err == nil {
		return ""
	}
	return outcomeOf(err).fault
}

// Passes returns an error for a temporary reason of a cancelled transaction: ErrUnknown for
// throttling, otherwise ErrConflict. For any other reason it returns nil.
func Passes(reason string) error {
	if o, _ := outcomes(reason); o.fault == store.Throttled || errors.Is(o.write, store.ErrConflict) {
		return o.write
	}
	return nil
}

// AccessDenied reports whether a call failed because the role lacks a permission.
func AccessDenied(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "AccessDeniedException"
}

// Invalid reports whether the service found a request malformed.
func Invalid(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ValidationException"
}

// NoIndex reports whether a query failed because the index is missing or still being built.
// The service reports both as a malformed request.
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

// WriteError returns an error that wraps err and matches either err's meaning in
// outcomes or ErrTooLarge.
//
// If err says that the condition of a write outside a transaction failed, WriteError
// instead returns the record in the table as held (an empty record if there is none).
// Then the error is nil, unless the record can't be decoded.
func WriteError(op string, err error) (held *store.Record, _ error) {
	return writeError(op, err, Decode)
}

// WriteErrorGlance is WriteError, but decodes the record by [Glance], without bodies.
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
	told := outcomeOf(err).write
	if told == nil { // a cancelled transaction whose only known reasons are failed conditions
		told = store.ErrUnknown
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && Invalid(err) && TooLarge(api.ErrorMessage()) {
		told = store.ErrTooLarge
	}
	return nil, fmt.Errorf("dynamo: %s: %w: %w", op, told, err)
}

// ReadError wraps the error of a read. The result also matches ErrRefused if another try can't
// help.
func ReadError(op string, err error) error {
	if errors.Is(outcomeOf(err).write, store.ErrRefused) {
		return fmt.Errorf("dynamo: %s: %w: %w", op, store.ErrRefused, err)
	}
	return fmt.Errorf("dynamo: %s: %w", op, err)
}
