package item

import (
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/idem/store"
)

// refused are the answers that say for certain that nothing was written, and
// that trying again won't help.
var refused = map[string]bool{
	"AccessDeniedException":               true,
	"ExpiredTokenException":               true,
	"IncompleteSignatureException":        true,
	"InvalidSignatureException":           true,
	"ItemCollectionSizeLimitExceeded":     true,
	"MissingAuthenticationTokenException": true,
	"ResourceNotFoundException":           true,
	"UnrecognizedClientException":         true,
	"ValidationException":                 true,
	"KMSAccessDeniedException":            true,
	"KMSDisabledException":                true,
	"KMSInvalidStateException":            true,
	"KMSNotFoundException":                true,
}

// Invalid reports whether the service couldn't make sense of a request.
func Invalid(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "ValidationException"
}

// WriteError translates what came instead of an answer to a write. held is the
// record that refused it; for that and no other case err is nil.
//
// Everything that isn't a certain refusal is unknown: a throttled last attempt
// may follow one whose answer was lost.
func WriteError(op string, err error) (held *store.Record, _ error) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		if len(failed.Item) == 0 {
			return &store.Record{}, nil
		}
		return Decode(failed.Item)
	}
	if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
		return nil, fmt.Errorf("dynamo: %s: %w: %w", op, store.ErrConflict, err)
	}
	if _, ok := errors.AsType[*types.ReplicatedWriteConflictException](err); ok {
		return nil, fmt.Errorf("dynamo: %s: %w: %w", op, store.ErrConflict, err)
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && refused[api.ErrorCode()] {
		return nil, fmt.Errorf("dynamo: %s: %w", op, err)
	}
	return nil, fmt.Errorf("dynamo: %s: %w: %w", op, store.ErrUnknown, err)
}

// ReadError wraps the error of a read.
func ReadError(op string, err error) error { return fmt.Errorf("dynamo: %s: %w", op, err) }
