package sink_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/background/sink"
)

// The errors as the services send them, through the SDK's own clients: its names
// for them are what the verdicts go by.
func TestErrorsOnTheWire(t *testing.T) {
	t.Parallel()
	queryError := func(code string) string {
		return `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>` + code +
			`</Code><Message>m</Message></Error><RequestId>r</RequestId></ErrorResponse>`
	}
	for name, test := range map[string]struct {
		sink   string
		status int
		header map[string]string
		body   string
		want   string
	}{
		"queue: too long":          {"queue", 400, map[string]string{"X-Amzn-Query-Error": "AWS.SimpleQueueService.BatchRequestTooLong;Sender"}, `{"__type":"com.amazonaws.sqs#BatchRequestTooLong"}`, counted},
		"queue: too long, in JSON": {"queue", 400, nil, `{"__type":"com.amazonaws.sqs#BatchRequestTooLong"}`, counted},
		"queue: bad characters":    {"queue", 400, nil, `{"__type":"com.amazonaws.sqs#InvalidMessageContents"}`, counted},
		"queue: a bad parameter":   {"queue", 400, map[string]string{"X-Amzn-Query-Error": "InvalidParameterValue;Sender"}, `{"__type":"com.amazon.coral.service#InvalidParameterValueException"}`, counted},
		"queue: it isn't there":    {"queue", 400, map[string]string{"X-Amzn-Query-Error": "AWS.SimpleQueueService.NonExistentQueue;Sender"}, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}`, down},
		"queue: not allowed":       {"queue", 403, map[string]string{"X-Amzn-Query-Error": "AccessDenied;Sender"}, `{"__type":"com.amazonaws.sqs#AccessDeniedException"}`, down},
		"queue: its key":           {"queue", 400, nil, `{"__type":"com.amazonaws.sqs#KmsDisabled"}`, down},
		"queue: broken":            {"queue", 500, nil, `oops`, down},
		"queue: taken":             {"queue", 200, nil, `{"Successful":[{"Id":"0","MessageId":"m","MD5OfMessageBody":"x"}],"Failed":[]}`, taken},
		"queue: entry refused":     {"queue", 200, nil, `{"Successful":[],"Failed":[{"Id":"0","Code":"InvalidMessageContents","SenderFault":true}]}`, counted},
		"queue: entry, its key":    {"queue", 200, nil, `{"Failed":[{"Id":"0","Code":"KmsThrottled","SenderFault":true}]}`, down},
		"queue: entry failed":      {"queue", 200, nil, `{"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false}]}`, down},
		"topic: too long":          {"topic", 400, nil, queryError("BatchRequestTooLong"), counted},
		"topic: a bad parameter":   {"topic", 400, nil, queryError("InvalidParameter"), counted},
		"topic: throttled":         {"topic", 400, nil, queryError("Throttled"), down},
		"topic: not allowed":       {"topic", 403, nil, queryError("AuthorizationError"), down},
		"bus: too large":           {"bus", 400, nil, `{"__type":"ValidationException","message":"Total size of the entries in the request is over the limit."}`, counted},
		"bus: entry refused":       {"bus", 200, nil, `{"FailedEntryCount":1,"Entries":[{"ErrorCode":"MalformedDetail","ErrorMessage":"m"}]}`, counted},
		"bus: entry throttled":     {"bus", 200, nil, `{"FailedEntryCount":1,"Entries":[{"ErrorCode":"ThrottlingException"}]}`, down},
		"bus: taken":               {"bus", 200, nil, `{"FailedEntryCount":0,"Entries":[{"EventId":"e"}]}`, taken},
		"function: too large":      {"function", 413, map[string]string{"X-Amzn-Errortype": "RequestTooLargeException"}, `{"Message":"m"}`, counted},
		"function: too large, bare": {
			"function", 413, nil, `<html>`, counted,
		},
		"function: throttled": {"function", 429, map[string]string{"X-Amzn-Errortype": "TooManyRequestsException"}, `{}`, down},
		"function: gone":      {"function", 404, map[string]string{"X-Amzn-Errortype": "ResourceNotFoundException"}, `{}`, down},
		"function: taken":     {"function", 202, nil, ``, taken},
		"durable: taken":      {"durable", 202, nil, ``, taken},
		"durable: name taken": {"durable", 409, map[string]string{"X-Amzn-Errortype": "DurableExecutionAlreadyStartedException"}, `{}`, counted},
		"durable: throttled":  {"durable", 429, map[string]string{"X-Amzn-Errortype": "TooManyRequestsException"}, `{}`, down},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for h, v := range test.header {
					w.Header().Set(h, v)
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer srv.Close()
			cfg := aws.Config{
				Region: "us-east-1", BaseEndpoint: &srv.URL, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
				Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
				}),
			}
			s := wired(cfg, srv.URL)[test.sink]
			errs := s.Deliver(t.Context(), deliveries(1))
			if diff := cmp.Diff(test.want, verdicts(errs, 1)); diff != "" {
				t.Errorf("%v: -want +got:\n%s", errs, diff)
			}
		})
	}
}

// PutEvents answers success for a bus that doesn't exist, and the events are gone: such a
// bus is unavailable until it is there, and is asked for once then.
func TestBusThatDoesNotExist(t *testing.T) {
	t.Parallel()
	const missing = `{"__type":"ResourceNotFoundException","message":"Event bus rides does not exist."}`
	for name, tt := range map[string]struct {
		status int
		body   string
		want   string
		asked  int // by three deliveries
	}{
		"missing":     {400, missing, down, 3},
		"no answer":   {500, `oops`, down, 3},
		"not allowed": {400, `{"__type":"AccessDeniedException","message":"m"}`, taken, 1},
		"there":       {200, `{"Name":"rides"}`, taken, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls []string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				target := req.Header.Get("X-Amz-Target")
				if calls = append(calls, target); target == "AWSEvents.DescribeEventBus" {
					w.WriteHeader(tt.status)
					_, _ = io.WriteString(w, tt.body)
					return
				}
				_, _ = io.WriteString(w, `{"FailedEntryCount":0,"Entries":[{"EventId":"e"}]}`)
			}))
			defer srv.Close()
			bus := sink.NewBus(eventbridge.New(eventbridge.Options{
				Region: "us-east-1", BaseEndpoint: &srv.URL, Retryer: aws.NopRetryer{}, Credentials: aws.AnonymousCredentials{},
			}), "rides", "rides")
			for range 3 {
				errs := bus.Deliver(t.Context(), deliveries(1))
				if diff := cmp.Diff(tt.want, verdicts(errs, 1)); diff != "" {
					t.Errorf("%v: -want +got:\n%s", errs, diff)
				}
			}
			asked := 0
			for _, c := range calls {
				if c == "AWSEvents.DescribeEventBus" {
					asked++
				}
			}
			if asked != tt.asked || tt.want == down && asked != len(calls) {
				t.Errorf("asked %v", calls)
			}
		})
	}
}
