package sink

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// blame is whose fault an error is.
type blame int

const (
	// ofSink: the service, the way there, or who sends. It says nothing of the job.
	ofSink blame = iota
	// ofJob: what was sent.
	ofJob
	// inDoubt: a refusal of the request, which may be for what the job holds, or
	// for how the sink is set up. A [round] decides by what becomes of the others.
	inDoubt
)

// fault is an error of a service, and whose it is.
type fault struct {
	blame blame
	err   error
}

// judged are the error codes that the services document for the calls made here,
// and that tell more than their class does. Codes of SQS are without their prefix
// AWS.SimpleQueueService.
var judged = codes{
	ofJob: {
		// SQS, SNS
		"BatchRequestTooLong", "InvalidMessageContents",
		// EventBridge
		"MalformedDetail",
		// Lambda
		"InvalidRequestContentException", "RequestTooLargeException", "SerializedRequestEntityTooLargeException",
	},
	ofSink: {
		// all: who sends
		"AccessDenied", "AccessDeniedException", "AuthorizationError", "ExpiredToken", "ExpiredTokenException", "IncompleteSignature",
		"IncompleteSignatureException", "InvalidClientTokenId", "InvalidSecurity", "InvalidSignatureException", "MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired", "RequestExpired", "SignatureDoesNotMatch",
		"UnrecognizedClientException",
		// all: the way there, and the service
		"InternalError", "InternalException", "InternalFailure", "InvalidAction", "MalformedHttpRequestException", "RequestAbortedException",
		"RequestTimeout", "RequestTimeoutException", "ServiceException", "ServiceUnavailable", "UnknownOperationException",
		// SQS
		"InvalidAddress", "NonExistentQueue", "OverLimit", "QueueDeletedRecently", "QueueDoesNotExist", "ResourceNotFoundException",
		"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired", "KmsThrottled",
		// SNS
		"EndpointDisabled", "NotFound", "PlatformApplicationDisabled", "Throttled",
		"KMSAccessDenied", "KMSDisabled", "KMSInvalidState", "KMSNotFound", "KMSOptInRequired", "KMSThrottling",
		// EventBridge
		"InvalidAccountIdException", "NotAuthorizedForDetailTypeException", "NotAuthorizedForSourceException", "OperationDisabledException",
		// Lambda
		"ModeNotSupportedException", "NoPublishedVersionException", "ResourceConflictException", "ResourceNotReadyException", "SnapStartException",
		"KMSAccessDeniedException", "KMSDisabledException", "KMSInvalidStateException", "KMSNotFoundException",
	},
}

type codes map[blame][]string

// of returns whose fault an error with a code is, false for one that isn't known.
func (c codes) of(code string) (blame, bool) {
	code = strings.TrimPrefix(code, "AWS.SimpleQueueService.")
	for b, list := range c {
		if slices.Contains(list, code) {
			return b, true
		}
	}
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	return ofSink, throttled
}

// callFault judges the error of a whole call: by its code, else by its class. A
// refusal of an unknown kind is in doubt; what is no answer is the sink's.
func callFault(err error) *fault {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		if b, known := judged.of(api.ErrorCode()); known {
			return &fault{b, err}
		}
	}
	resp, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok {
		return &fault{ofSink, err}
	}
	return &fault{classes(resp.HTTPStatusCode()), err}
}

// classes are whose fault errors are of which only the status is known.
func classes(status int) blame {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return ofJob
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusProxyAuthRequired, http.StatusRequestTimeout,
		http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return ofSink
	}
	if status/100 == 4 {
		return inDoubt
	}
	return ofSink
}

// entryFault judges the error of one entry of a batch. sender says that it is one
// of those that blame the request, as far as the service tells.
func entryFault(code, message string, sender bool) *fault {
	f := &fault{ofSink, errors.New(code + ": " + message)}
	if b, known := judged.of(code); known {
		f.blame = b
	} else if sender {
		f.blame = inDoubt
	}
	return f
}
