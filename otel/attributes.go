package otel

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// The attributes of spans.
const (
	record    attribute.Key = "samekey.record"
	operation attribute.Key = "samekey.operation"
	route     attribute.Key = "samekey.route"
	phase     attribute.Key = "samekey.phase"
	point     attribute.Key = "samekey.recovery_point"
	claim     attribute.Key = "samekey.claim"
	replayed  attribute.Key = "samekey.replayed"
	panicked  attribute.Key = "samekey.panicked"
	jobKind   attribute.Key = "samekey.job.kind"
	tries     attribute.Key = "samekey.job.tries"
	linked    attribute.Key = "samekey.link"

	errorType = semconv.ErrorTypeKey
	status    = semconv.HTTPResponseStatusCodeKey
	messageID = semconv.MessagingMessageIDKey
)

// meanings has all attributes that this package sets, and their meanings.
func meanings() [][2]string {
	return [][2]string{
		{string(record), "short hash that names the record in logs"},
		{string(operation), "server-made id of the operation"},
		{string(route), "the request's route"},
		{string(phase), "name of the phase"},
		{string(point), "the last committed phase"},
		{string(claim), "outcome of a claim: new, take_over, replay, mismatch, other_caller, expired, stuck, in_flight"},
		{string(replayed), "true if the answer is a stored answer"},
		{string(panicked), "true if the handler or a phase did not return"},
		{string(jobKind), "kind of the job"},
		{string(tries), "failed deliveries of the job so far; absent if none"},
		{string(errorType), "the error in a word: a code of docs/use/http.md; of a delivery delivery_failed, sink_unavailable or held_back"},
		{string(status), "status of the answer"},
		{string(messageID), "id of the job"},
		{string(semconv.MessagingOperationTypeKey), "send for a delivery, process for a consumer"},
		{string(semconv.MessagingOperationNameKey), "deliver or process"},
		{string(linked), "of a link: first_attempt at the operation, the client's span, or the invocation of the function"},
	}
}
