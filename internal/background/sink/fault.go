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

// blame is the cause of an error: the sink, the job, or unknown.
type blame int

const (
	// ofSink: the service, the connection or the sender's rights are the cause.
	ofSink blame = iota
	// ofJob: the content of the job is the cause.
	ofJob
	// inDoubt: the cause is either the job's content or the sink's setup. A [round]
	// decides which, by the results of the other jobs.
	inDoubt
)

// fault is an error of a service, and its cause.
type fault struct {
	blame blame
	err   error
}

// judged has the cause for each error code that a service documents for its calls in
// this package, unless the HTTP status says the same. Codes of SQS are written without
// their prefix AWS.SimpleQueueService.
var judged = func() codes {
	all := make(codes)
	for _, s := range slices.Concat(services, []service{anyService}) {
		for b, list := range s.codes {
			all[b] = append(all[b], list...)
		}
	}
	return all
}()

type codes map[blame][]string

// codes.of returns the cause for an error code, or false if the code is unknown.
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

// callFault returns the fault of a call that failed as a whole. The cause follows from
// the error's code if judged.of knows the code, otherwise from the HTTP status. If
// there was no answer, the sink is at fault.
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

// classes(status) returns the cause of an error with this HTTP status.
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

// entryFault returns the fault of an entry that failed in a batch. The parameter sender is true if
// the service blames the request.
func entryFault(code, message string, sender bool) *fault {
	f := &fault{ofSink, errors.New(code + ": " + message)}
	if b, known := judged.of(code); known {
		f.blame = b
	} else if sender {
		f.blame = inDoubt
	}
	return f
}
