package lambdarun

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrThrottled matches the error of an invocation that was refused because
	// MaxConcurrency other invocations are in flight. The function did not run.
	ErrThrottled = errors.New("rate exceeded")
	// ErrRequestTooLarge matches the error of an invocation whose payload is over
	// [MaxRequestBytes]. The function did not run.
	ErrRequestTooLarge = errors.New("request payload over 6291456 bytes")
	// ErrClosed matches the error of an invocation that was made after Close, or that
	// Close interrupted. An interrupted function may have run in part.
	ErrClosed = errors.New("function is closed")
)

// Values of [FunctionError].Type for errors that Lambda itself reports.
const (
	// TypeTimedOut: the invocation reached its deadline, or a process did not ask for
	// work within ten seconds of its start.
	TypeTimedOut = "Sandbox.Timedout"
	// TypeExited: the process exited or was killed before it answered the invocation, or
	// before it asked for its first invocation.
	TypeExited = "Runtime.ExitError"
	// TypeInvalidEntrypoint: the binary could not be started.
	TypeInvalidEntrypoint = "Runtime.InvalidEntrypoint"
	// TypeResponseTooLarge: the function answered with more than
	// [MaxResponseBytes].
	TypeResponseTooLarge = "Function.ResponseSizeTooLarge"
)

// FunctionError is the error of an invocation that was accepted and then failed. The
// function returned an error or panicked, or a Type constant names the cause. What the
// function did before the failure is not undone.
type FunctionError struct {
	// Type is one of the Type constants, or the type that the function reported. A Go
	// function reports the name of the error's type.
	Type string
	// Message is the error's text. If Type is one of the Type constants except
	// TypeResponseTooLarge, the message contains the request id.
	Message string
	// RequestID is the id of the invocation.
	RequestID string
	// Payload is the JSON that Lambda gives the caller: errorType, errorMessage and, if
	// the function reported one, stackTrace.
	Payload []byte
}

// Error returns type and message in one line.
func (e *FunctionError) Error() string {
	return fmt.Sprintf("lambdarun: function error: %s: %s", e.Type, e.Message)
}

func newFunctionError(requestID, errType, message string) *FunctionError {
	// Marshal cannot fail: the struct holds two strings.
	payload, _ := json.Marshal(struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}{errType, message})
	return &FunctionError{Type: errType, Message: message, RequestID: requestID, Payload: payload}
}

// reportedError returns the error that a runtime reported in body. The parameter header
// is the error's type from the HTTP header or trailer. reportedError uses header if
// body has no type.
func reportedError(requestID, header string, body []byte) *FunctionError {
	var report struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	if err := json.Unmarshal(body, &report); err != nil {
		// If the body is not JSON, Lambda takes it as the error's message.
		if header == "" {
			header = "Runtime.Unknown"
		}
		return newFunctionError(requestID, header, string(body))
	}
	if report.Type == "" {
		report.Type = header
	}
	return &FunctionError{Type: report.Type, Message: report.Message, RequestID: requestID, Payload: body}
}

// trailerError returns the error that a runtime sent in a response's trailer, after a part
// of the response. The parameter body is base64.
func trailerError(requestID, errType, body string) *FunctionError {
	report, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return newFunctionError(requestID, errType, body)
	}
	return reportedError(requestID, errType, report)
}

func timedOutError(requestID string, after time.Duration) *FunctionError {
	return newFunctionError(requestID, TypeTimedOut,
		fmt.Sprintf("RequestId: %s Error: Task timed out after %.2f seconds", requestID, after.Seconds()))
}

// exitedError returns the error of an invocation whose process ended. The parameter how is
// the process's final state in the words of os/exec.
func exitedError(requestID, how string) *FunctionError {
	reason := "Runtime exited with error: " + how
	if how == "exit status 0" {
		reason = "Runtime exited without providing a reason"
	}
	return newFunctionError(requestID, TypeExited, fmt.Sprintf("RequestId: %s Error: %s", requestID, reason))
}

func responseTooLargeError(requestID string) *FunctionError {
	return newFunctionError(requestID, TypeResponseTooLarge,
		fmt.Sprintf("Response payload size exceeded maximum allowed payload size (%d bytes).", MaxResponseBytes))
}
