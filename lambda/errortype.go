package lambda

import (
	"errors"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/samekey/samekey/idem"
)

// errorTypes names what the engine refuses, for callers that see no Go errors:
// Step Functions match on errorType, and so do log filters. The first match
// counts. The names are part of the API.
var errorTypes = []struct {
	err  error
	name string
}{
	{idem.ErrKeyMissing, "IdempotencyKeyMissing"},
	{idem.ErrKeyInvalid, "IdempotencyKeyInvalid"},
	{idem.ErrCredentials, "IdempotencyCredentials"},
	{idem.ErrMismatch, "IdempotencyKeyMismatch"},
	{idem.ErrExpired, "IdempotencyKeyExpired"},
	{idem.ErrNotKept, "IdempotencyAnswerNotKept"},
	{idem.ErrStuck, "IdempotencyStuck"},
	{idem.ErrInFlight, "IdempotencyInFlight"},
	{idem.ErrLeaseLost, "IdempotencyLeaseLost"},
	{idem.ErrNoTime, "IdempotencyNoTimeLeft"},
	{idem.ErrCorrupt, "IdempotencyRecordCorrupt"},
	{idem.ErrSecret, "IdempotencySecretMissing"},
	{idem.ErrScope, "IdempotencyScopeUnknown"},
	{idem.ErrUnavailable, "IdempotencyStoreUnavailable"},
	{idem.ErrRequest, "IdempotencyRequestInvalid"},
}

// reported is err as the runtime is to report it: an error of the engine's under
// its own name, any other as it is, which the runtime names after its Go type.
func reported(err error) error {
	if _, ours := err.(*idem.Error); !ours { //nolint:errorlint // one inside of another error is that error's business
		return err
	}
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return messages.InvokeResponse_Error{Message: err.Error(), Type: t.name}
		}
	}
	return err
}
