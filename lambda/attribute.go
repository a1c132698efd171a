package lambda

import (
	"fmt"
	"slices"
	"strings"
)

// transportAttributes are message attributes that say how a message came here
// and not what it asks for: they differ where a producer sends one job twice.
var transportAttributes = []string{
	KeyAttribute, "replayed" /* of what SNS brings from a topic's archive */, "_datadog", "awstraceheader", "b3", "baggage", "correlation-context", "dd-pathway-ctx", "dd-pathway-ctx-base64",
	"elastic-apm-traceparent", "grpc-trace-bin", "newrelic", "ot-tracer-sampled", "ot-tracer-spanid", "ot-tracer-traceid",
	"sentry-trace", "traceparent", "tracestate", "uber-trace-id", "x-amzn-trace-id", "x-cloud-trace-context", "x-request-id",
}

// identifies reports whether a message attribute is part of what a message asks
// for.
func identifies(name string) bool {
	name = strings.ToLower(name)
	return !slices.Contains(transportAttributes, name) && !strings.HasPrefix(name, "x-b3-") && !strings.HasPrefix(name, "x-datadog-")
}

// attributeKey is the key in a message's attribute, or the message's id where
// there is none. An attribute without text must not count as none: the same job
// would be done once for each message.
func attributeKey(value string, there bool, id string) (string, error) {
	switch {
	case !there:
		return id, nil
	case value == "":
		return "", fmt.Errorf("the message attribute %s has no text", KeyAttribute)
	}
	return value, nil
}
