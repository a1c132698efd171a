package otel

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// The attributes of spans; docs/operate/signals.md explains them.
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
