package sink

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/samekey/samekey/idem"
)

// content are the errors of the services that blame what was sent, and not who
// sent it, where to, or how much.
var content = map[string]bool{
	// SQS and SNS
	"AWS.SimpleQueueService.BatchRequestTooLong":  true,
	"AWS.SimpleQueueService.UnsupportedOperation": true,
	"BatchRequestTooLong":                         true,
	"InvalidMessageContents":                      true,
	"InvalidParameter":                            true,
	"InvalidParameterValue":                       true,
	"MissingParameter":                            true,
	"ParameterValueInvalid":                       true,
	"UnsupportedOperation":                        true,
	// EventBridge, where it refuses a whole request and an entry
	"ValidationException": true,
	"InvalidArgument":     true,
	"MalformedDetail":     true,
	// Lambda
	"InvalidParameterValueException": true,
	"InvalidRequestContentException": true,
	"RequestTooLargeException":       true,
}

// elsewhere are the codes of entries of SQS and SNS that blame the sender, but not
// for what it sent: too much at once, or a key or a queue it may not use.
var elsewhere = map[string]bool{
	"AccessDenied": true, "AccessDeniedException": true, "AuthorizationError": true, "InvalidSecurity": true,
	"OverLimit": true, "RequestThrottled": true, "Throttled": true, "ThrottlingException": true,
	"KmsAccessDenied": true, "KmsDisabled": true, "KmsInvalidKeyUsage": true, "KmsInvalidState": true,
	"KmsNotFound": true, "KmsOptInRequired": true, "KmsThrottled": true,
	"KMSAccessDenied": true, "KMSDisabled": true, "KMSInvalidState": true,
	"KMSNotFound": true, "KMSOptInRequired": true, "KMSThrottling": true,
}

// refused reports whether err blames what was sent.
func refused(err error) bool {
	if api, ok := errors.AsType[smithy.APIError](err); ok && content[api.ErrorCode()] {
		return true
	}
	resp, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return ok && resp.HTTPStatusCode() == http.StatusRequestEntityTooLarge
}

// fault is the error of one delivery that was sent alone.
func fault(service string, err error) error {
	if refused(err) {
		return fmt.Errorf("%s: %w", service, err)
	}
	return down(service, err)
}

func down(service string, err error) error {
	return fmt.Errorf("%s: %w: %w", service, idem.ErrSinkDown, err)
}

// outOfTime is the error of a delivery that isn't tried any more.
func outOfTime(ctx context.Context) error {
	return fmt.Errorf("%w: %w", idem.ErrNotTried, context.Cause(ctx))
}

var errHeldBack = fmt.Errorf("%w: an earlier job of its group failed", idem.ErrNotTried)

// entryFault is the error of one entry of a batch that was taken in part. sender
// says that the service blames who sent it.
func entryFault(service, code, message string, sender bool) error {
	err := errors.New(code + ": " + message)
	if sender && !elsewhere[code] {
		return fmt.Errorf("%s: %w", service, err)
	}
	return down(service, err)
}
