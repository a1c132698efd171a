package lambda

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem/trace"
)

// Attributes of a transport don't identify the work, in any case.
func TestAttributesThatIdentify(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"color": true, "x-b3": true, "x-datadog": true, "X-B3-TraceId": false, "x-datadog-trace-id": false, "Traceparent": false, "idempotency-key": false, "kind": true,
	} {
		if got := identifies(name); got != want {
			t.Errorf("%s identifies: %v, want %v", name, got, want)
		}
	}
}

// The trace of a job is that of a job and of nothing else; without a key there is none.
func TestTraceOfAJob(t *testing.T) {
	t.Parallel()
	const job = `{"idempotency_key":"k","operation":"o","kind":"k","args":{},"traceparent":"p","tracestate":"s"}`
	for body, want := range map[string]trace.Context{
		job: {Parent: "p", State: "s"},
		`{"idempotency_key":"k","operation":"o","kind":"k","args":{}}`: {},
		`{"idempotency_key":"k","traceparent":"p","more":1}`:           {},
		`{"idempotency_key":"k","traceparent":"p"`:                     {},
		`{"traceparent":"p"}`:                                          {},
	} {
		if got := jobTrace([]byte(body)); got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
	for detail, want := range map[string]string{
		job: "k", `{"idempotency_key":"k","more":1}`: "id", `{"idempotency_key":"k"`: "id", `{}`: "id",
	} {
		if got, err := detailKey(json.RawMessage(detail), "id"); got != want || err != nil {
			t.Errorf("%s: the key is %q, %v, want %q", detail, got, err, want)
		}
	}
	if s, err := textIn(map[string]json.RawMessage{"a": json.RawMessage("null")}, "a"); err == nil {
		t.Errorf("null is the text %q", s)
	}
}

// An attribute has a type and a value, of whatever type that is; without any there is no key.
func TestAttributes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a           any
		kind, value string
	}{
		{map[string]any{"Type": "String", "Value": "a"}, "String", "a"},
		{map[string]any{"Type": "Number", "Value": 7.5}, "Number", "7.5"},
		{map[string]any{"Type": "String"}, "String", ""},
		{"text", "", ""},
		{nil, "", ""},
	} {
		if kind, value := snsAttribute(tt.a); kind != tt.kind || value != tt.value {
			t.Errorf("%v: %q %q", tt.a, kind, value)
		}
	}
	if key, keyed, err := attributeKey(maps.All(map[string]string{"color": "red"})); key != "" || keyed || err != nil {
		t.Errorf("without a key: %q, %v, %v", key, keyed, err)
	}
}

// A caller of a REST API may be a Cognito identity without a user's ARN.
func TestCallerWithoutAUser(t *testing.T) {
	t.Parallel()
	var rc events.APIGatewayProxyRequestContext
	rc.Identity.CognitoIdentityPoolID, rc.Identity.CognitoIdentityID = "pool", "one"
	if got, _ := restIdentity(&rc); got.Kind != "iam" || got.Subject != "pool|one" {
		t.Errorf("the caller is %+v", got)
	}
}
