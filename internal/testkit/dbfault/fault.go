// Package dbfault counts the requests of a DynamoDB client by operation, and injects faults that no
// emulator produces: refused connections, throttling, conflicts, delays, and answers that are lost
// or torn after the write was applied.
//
//	tr := &dbfault.Transport{Fault: func(op string, n int) dbfault.Fault {
//		if op == "PutItem" && n == 1 {
//			return dbfault.LoseAnswer
//		}
//		return nil
//	}}
//	client := db.Client(func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: tr} })
package dbfault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Fault replaces the round trip of a request to DynamoDB. The client gets the Fault's
// result. The Fault may send the request through base. If the Fault is nil, [Transport]
// sends the request normally. Some functions of this package are faults, such as
// [LoseAnswer]. Other functions return a fault, such as [Delay]. Tests can define more
// faults.
//
// A Fault follows the contract of [http.RoundTripper]: for example, it closes the
// request's body. A Fault may be called for several requests at once. If a fault of
// this package sends the request, the fault sends the whole request and waits for the
// answer. If the context ends or the connection fails before the answer is there, the
// fault returns the resulting error.
type Fault func(base http.RoundTripper, req *http.Request) (*http.Response, error)

// LoseRequest sends nothing. The client gets the error of a refused connection.
func LoseRequest(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
	closeBody(req)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// LoseAnswer sends the request, waits for the answer, and discards it. The client gets
// the error of a reset connection.
func LoseAnswer(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	if _, _, err := send(base, req); err != nil {
		return nil, err
	}
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}

// TearAnswer sends the request, and breaks the connection in the middle of the answer.
// The client gets the status and the headers of the answer, then half of the body, and
// then io.ErrUnexpectedEOF. The status is 200 if the request was applied, and an
// error's status if DynamoDB refused the request.
func TearAnswer(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, body, err := send(base, req)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), tornReader{}))
	return resp, nil
}

type tornReader struct{}

func (tornReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Answer500 sends nothing. It answers with an internal error of DynamoDB, as if
// DynamoDB had failed before it applied the request.
func Answer500(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	return AnswerError(http.StatusInternalServerError, "InternalServerError", "injected before the request was applied")(base, req)
}

// Answer500Applied sends the request, and replaces the answer with an internal error of
// DynamoDB, as if DynamoDB had failed after it applied the request.
func Answer500Applied(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	if _, _, err := send(base, req); err != nil {
		return nil, err
	}
	return answer(req, http.StatusInternalServerError, errorBody("InternalServerError", "injected after the request was applied")), nil
}

// Throttle sends nothing, and answers with ProvisionedThroughputExceededException.
func Throttle(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	return AnswerError(http.StatusBadRequest, "ProvisionedThroughputExceededException", "injected: the level of configured provisioned throughput was exceeded")(base, req)
}

// Conflict sends nothing. It answers as DynamoDB does while another transaction uses an
// item of the request. A request for a single item gets TransactionConflictException. A
// transaction gets TransactionCanceledException, with the reason TransactionConflict
// for its first item. If another item must have this reason, use [CancelTransaction].
func Conflict(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	switch operation(req) {
	case "TransactWriteItems", "TransactGetItems":
		n, err := transactItems(req)
		if err != nil {
			return nil, err
		}
		reasons := make([]string, max(n, 1))
		reasons[0] = "TransactionConflict"
		return CancelTransaction(reasons...)(base, req)
	}
	return AnswerError(http.StatusBadRequest, "TransactionConflictException", "injected: transaction is ongoing for the item")(base, req)
}

// CancelTransaction returns a fault that sends nothing and answers with
// TransactionCanceledException. The parameter reasons has one reason for each item of
// the transaction, in the order of the items. A reason is "TransactionConflict",
// "ThrottlingError", "ProvisionedThroughputExceeded" or another code of DynamoDB. ""
// means "None".
func CancelTransaction(reasons ...string) Fault {
	type reason struct {
		Code    string
		Message string `json:",omitempty"`
	}
	list := make([]reason, len(reasons))
	codes := make([]string, len(reasons))
	for i, code := range reasons {
		list[i] = reason{Code: "None"}
		if code != "" && code != "None" {
			list[i] = reason{code, "injected"}
		}
		codes[i] = list[i].Code
	}
	message := "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"
	body := errorBody("TransactionCanceledException", message)
	body["CancellationReasons"] = list
	return func(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
		closeBody(req)
		return answer(req, http.StatusBadRequest, body), nil
	}
}

// AnswerError returns a fault that sends nothing and answers with an error in DynamoDB's form. The
// parameter code is the error's short name, such as "TransactionInProgressException".
func AnswerError(status int, code, message string) Fault {
	return func(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
		closeBody(req)
		return answer(req, status, errorBody(code, message)), nil
	}
}

// Delay returns a fault that holds the request for d, and then sends it. If the context
// ends while the request is held, nothing is sent.
func Delay(d time.Duration) Fault {
	return func(base http.RoundTripper, req *http.Request) (*http.Response, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-req.Context().Done():
			closeBody(req)
			return nil, context.Cause(req.Context())
		case <-timer.C:
			return base.RoundTrip(req)
		}
	}
}

// Hang holds the request until the request's context ends, and sends nothing.
func Hang(_ http.RoundTripper, req *http.Request) (*http.Response, error) {
	closeBody(req)
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

// send sends the request and reads the whole answer.
func send(base http.RoundTripper, req *http.Request) (*http.Response, []byte, error) {
	resp, err := base.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, nil, err
	}
	return resp, body, nil
}

// closeBody closes the body of a request that isn't sent, as http.RoundTripper
// requires.
func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}

// errorBody returns the body of an error's answer. DynamoDB calls the message "message"
// in some errors and "Message" in others, so the body has both.
func errorBody(code, message string) map[string]any {
	return map[string]any{
		"__type":  "com.amazonaws.dynamodb.v20120810#" + code,
		"message": message,
		"Message": message,
	}
}

func answer(req *http.Request, status int, body map[string]any) *http.Response {
	b, err := json.Marshal(body)
	if err != nil {
		panic("dynamotest: " + err.Error()) //nolint:forbidigo // strings only
	}
	return &http.Response{
		Status:     strconv.Itoa(status) + " " + http.StatusText(status),
		StatusCode: status,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header: http.Header{
			"Content-Type":     {"application/x-amz-json-1.0"},
			"X-Amzn-Requestid": {"INJECTED"},
		},
		Body:          io.NopCloser(bytes.NewReader(b)),
		ContentLength: int64(len(b)),
		Request:       req,
	}
}

// transactItems returns how many items the transaction of a request has. It reads
// the whole body.
func transactItems(req *http.Request) (int, error) {
	var in struct{ TransactItems []json.RawMessage }
	if req.Body == nil {
		return 0, nil
	}
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		closeBody(req)
		return 0, err
	}
	return len(in.TransactItems), nil
}
