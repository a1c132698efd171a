// Package retrysign has the request headers in which senders count their attempts.
package retrysign

import (
	"net/http"
	"slices"
	"strings"
)

// Client is the header in which package idem/client counts its attempts.
const Client = "Retry-Attempt"

// Header is a request header in which senders count their attempts.
type Header struct {
	Name    string // in canonical form
	First   int    // the count of a first attempt, if it has one; a retry's count is higher
	Senders string // names of the senders, for people
	Source  string // URL of the documentation
}

// amzSDKRequest is the only header whose count is a parameter: "attempt=2; max=3".
const amzSDKRequest = "Amz-Sdk-Request"

var all = []Header{
	{amzSDKRequest, 1, "AWS SDKs, Smithy (`attempt=`)", "https://github.com/aws/aws-sdk-go-v2/blob/main/aws/retry/middleware.go"},
	{"X-Stainless-Retry-Count", 0, "Stainless", "https://github.com/openai/openai-go/blob/main/internal/requestconfig/requestconfig.go"},
	{Client, 0, "`idem/client`, Kiota", "https://github.com/microsoftgraph/msgraph-sdk-design/blob/main/middleware/RetryHandler.md"},
	{"X-Envoy-Attempt-Count", 1, "Envoy", "https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_filters/router_filter"},
	{"X-Slack-Retry-Num", 0, "Slack", "https://docs.slack.dev/apis/events-api/"},
	{"V-C-Retry-Count", 0, "CyberSource", "https://developer.cybersource.com/docs/vas/en-us/webhooks/implementation/all/rest/webhooks/wh-fg-notification-format.html"},
	{"Square-Retry-Number", 0, "Square", "https://developer.squareup.com/docs/webhooks/step2subscribe"},
	{"Toast-Attempt-Number", 1, "Toast", "https://doc.toasttab.com/doc/devguide/apiHttpHeaders.html"},
	{"X-Hookdeck-Attempt-Count", 1, "Hookdeck", "https://hookdeck.com/docs/destinations"},
	{"Upstash-Retried", 0, "QStash", "https://upstash.com/docs/qstash/howto/receiving"},
	{"X-Cloudtasks-Taskretrycount", 0, "Cloud Tasks", "https://cloud.google.com/tasks/docs/creating-http-target-tasks"},
}

// All returns the known headers.
func All() []Header { return slices.Clone(all) }

// Is reports whether name (in canonical form) is a known header.
func Is(name string) bool {
	return slices.ContainsFunc(all, func(h Header) bool { return h.Name == name })
}

// In reports whether h marks the request as a retry. A header that occurs twice, or
// whose value isn't a count, is ignored.
func In(h http.Header) bool {
	for i := range all {
		values := h[all[i].Name]
		if len(values) != 1 {
			continue
		}
		count := values[0]
		if all[i].Name == amzSDKRequest {
			count = parameter(count, "attempt")
		}
		if Above(count, all[i].First) {
			return true
		}
	}
	return false
}

// parameter returns the value of a parameter in list; "" if list has no parameter with this
// name, or several.
func parameter(list, name string) (value string) {
	found := false
	for part := range strings.SplitSeq(list, ";") {
		if n, v, _ := strings.Cut(strings.TrimSpace(part), "="); n == name {
			if found {
				return ""
			}
			found, value = true, v
		}
	}
	return value
}

// Above reports whether count is a decimal number of at most nine digits, and greater than first.
func Above(count string, first int) bool {
	if len(count) > 9 {
		return false
	}
	n := 0
	for i := range len(count) {
		if count[i] < '0' || count[i] > '9' {
			return false
		}
		n = n*10 + int(count[i]-'0')
	}
	return n > first
}
