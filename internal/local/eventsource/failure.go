package eventsource

import (
	"time"

	"github.com/samekey/samekey/internal/servers/ids"
)

// Conditions of a [Failure].
const (
	RetryAttemptsExhausted = "RetryAttemptsExhausted"
	RecordAgeExceeded      = "RecordAgeExceeded"
)

// Failure is the message that Lambda sends to the on-failure destination of a stream
// when a batch is given up. The message says where to find the batch's records.
// [Failure.Message] and [Failure.Object] return Lambda's JSON of the message.
type Failure struct {
	RequestContext FailureRequest `json:"requestContext"`
	// ResponseContext is nil if ApproximateInvokeCount is 0, because the records became
	// too old before the function got the batch.
	ResponseContext *FailureResponse `json:"responseContext,omitempty"`
	Version         string           `json:"version"`
	Timestamp       string           `json:"timestamp"` // RFC 3339, with milliseconds
	Batch           FailureBatch     `json:"DDBStreamBatchInfo"`
	// Payload is the event with the records of the batch.
	Payload []byte `json:"-"`
}

// FailureRequest describes the last failed invocation.
type FailureRequest struct {
	// RequestID is the id of the invocation if the function failed with an error.
	// Otherwise it is a random id.
	RequestID   string `json:"requestId"`
	FunctionARN string `json:"functionArn"`
	Condition   string `json:"condition"`
	// ApproximateInvokeCount is how often the function got the batch. If the batch's
	// oldest records were given up because of their age, earlier invocations with them
	// count, too.
	ApproximateInvokeCount int `json:"approximateInvokeCount"`
}

// FailureResponse is the result of the last failed invocation.
type FailureResponse struct {
	StatusCode      int    `json:"statusCode"`
	ExecutedVersion string `json:"executedVersion"`
	// FunctionError is "Unhandled" if the function failed with an error, and otherwise nil.
	FunctionError *string `json:"functionError"`
}

// FailureBatch names the records of a batch.
type FailureBatch struct {
	ShardID             string `json:"shardId"`
	StartSequenceNumber string `json:"startSequenceNumber"`
	EndSequenceNumber   string `json:"endSequenceNumber"`
	FirstArrival        string `json:"approximateArrivalOfFirstRecord"` // RFC 3339
	LastArrival         string `json:"approximateArrivalOfLastRecord"`  // RFC 3339
	BatchSize           int    `json:"batchSize"`
	StreamARN           string `json:"streamArn"`
}

func newFailure(s Stream, shard string, records []streamRecord, condition string, invoked int, last attempt) Failure {
	f := Failure{
		RequestContext: FailureRequest{
			RequestID:              last.requestID,
			FunctionARN:            s.FunctionARN,
			Condition:              condition,
			ApproximateInvokeCount: invoked,
		},
		Version:   "1.0",
		Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		Batch: FailureBatch{
			ShardID:             shard,
			StartSequenceNumber: records[0].sequence,
			EndSequenceNumber:   records[len(records)-1].sequence,
			FirstArrival:        records[0].created.UTC().Format(time.RFC3339),
			LastArrival:         records[len(records)-1].created.UTC().Format(time.RFC3339),
			BatchSize:           len(records),
			StreamARN:           s.ARN,
		},
		Payload: streamEvent(records),
	}
	if f.RequestContext.RequestID == "" {
		f.RequestContext.RequestID = ids.UUID()
	}
	if invoked > 0 {
		f.ResponseContext = &FailureResponse{StatusCode: 200, ExecutedVersion: "$LATEST"}
		if last.unhandled {
			f.ResponseContext.FunctionError = new("Unhandled")
		}
	}
	return f
}

// Message returns the document for a queue or a topic, without records.
func (f Failure) Message() []byte { return marshal(f) }

// Object returns the document for a bucket: the document of Message with one more
// field, payload, which holds the event as a string.
func (f Failure) Object() []byte {
	return marshal(struct {
		Failure
		Payload string `json:"payload"`
	}{f, string(f.Payload)})
}
