package lambda

import (
	"fmt"
	"slices"
	"strings"
)

// transportAttributes are message attributes that say how a message came here
// and not what it asks for: they differ where a producer sends one job twice.
var transportAttributes = []string{
	KeyAttribute, "_datadog", "b3", "baggage", "correlation-context", "newrelic", "x-request-id",
}

// identifies reports whether a message attribute is part of what a message asks
// for.
func identifies(name string) bool {
	name = strings.ToLower(name)
	return !slices.Contains(transportAttributes, name) && !strings.Contains(name, "trace") &&
		!strings.HasPrefix(name, "x-b3-") && !strings.HasPrefix(name, "x-datadog-") && !strings.HasPrefix(name, "dd-")
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
