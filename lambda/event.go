package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/samekey/samekey/internal/base/redact"
)

// ErrEvent matches the error for an event of a kind that the adapter or batch doesn't
// take. Usually the function is connected to the wrong source. The handler is not run,
// because such an event may decode without an error, but to an empty event, or to one
// without the caller's identity.
var ErrEvent = errors.New("event of another kind")

// notA returns the error for an event of a wrong kind. The text want names the right kind, and why
// says what is wrong.
func notA(want, why string) error {
	return fmt.Errorf("lambda: %w: want %s: %s", ErrEvent, want, why)
}

// origin is what a record says of itself: its service, its id, and the ARN of its
// source.
type origin struct{ service, id, arn string }

// checkOrigins checks that each of n records comes from the expected service and has an id and a
// source. Without this check nobody would notice that a function is connected to the wrong source.
func checkOrigins(want, service string, n int, of func(i int) origin) error {
	if n == 0 {
		return notA(want, "it has no records")
	}
	for i := range n {
		switch o := of(i); {
		case o.service != service:
			return notA(want, fmt.Sprintf("record %d is of %.40q", i, o.service))
		case o.id == "":
			return notA(want, fmt.Sprintf("record %d has no id", i))
		case o.arn == "":
			return notA(want, fmt.Sprintf("record %d doesn't name its source", i))
		}
	}
	return nil
}

// decode reads an event. It turns a panic into an error, because some types of
// aws-lambda-go have their own decoders, which panic if the payload is of another kind.
func decode[Ev any](payload []byte) (ev Ev, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("lambda: %w: it can't be decoded; the payload is %s", ErrEvent, kind(payload))
		}
	}()
	if err := json.Unmarshal(payload, &ev); err != nil {
		return ev, fmt.Errorf("lambda: %w: %w; the payload is %s", ErrEvent, redact.Decoding(err), kind(payload))
	}
	return ev, nil
}

// kind describes a payload, for error messages only. The description has a limited length, and
// contains no values of the payload except the name of a source.
func kind(payload []byte) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(payload, &members); err != nil {
		return "no JSON object"
	}
	var p struct {
		HTTPMethod  string `json:"httpMethod"`
		DetailType  string `json:"detail-type"`
		EventSource string `json:"eventSource"` // set in events whose records don't name their source, such as Kafka's
		Records     []struct {
			EventSource string `json:"eventSource"` // also matches SNS's spelling, EventSource
		} `json:"Records"`
		RequestContext struct {
			ConnectionID string    `json:"connectionId"`
			DomainName   string    `json:"domainName"`
			ELB          *struct{} `json:"elb"`
			HTTP         struct {
				Method string `json:"method"`
			} `json:"http"`
		} `json:"requestContext"`
	}
	_ = json.Unmarshal(payload, &p) // if a member has another type than its field, the field stays empty
	switch {
	case len(members) == 0:
		return "an empty object"
	case len(p.Records) > 0:
		return fmt.Sprintf("records of %.40q", p.Records[0].EventSource)
	case p.EventSource != "":
		return fmt.Sprintf("records of %.40q", p.EventSource)
	case p.DetailType != "":
		return "an EventBridge event"
	case p.RequestContext.ELB != nil:
		return albKind
	case p.RequestContext.ConnectionID != "":
		return "a WebSocket API event"
	case p.RequestContext.HTTP.Method != "" && strings.Contains(p.RequestContext.DomainName, urlDomain):
		return functionURLKind
	case p.RequestContext.HTTP.Method != "":
		return httpAPIKind
	case p.HTTPMethod != "":
		return restKind
	}
	names := slices.Sorted(maps.Keys(members))
	return fmt.Sprintf("an object of %.40q", names[:min(len(names), 5)])
}

// encode marshals an answer as the runtime does for plain handlers, without HTML
// escapes. An escape would take six bytes instead of one, and an answer has at most 6
// MB.
func encode(re any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(re); err != nil {
		return nil, fmt.Errorf("lambda: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// resourceName returns the last part of an ARN.
func resourceName(arn string) string {
	return arn[strings.LastIndexAny(arn, ":/")+1:]
}

// jsonHeader declares a body as JSON. Engines with [idem.Fingerprint.CanonicalJSON] compare such a
// body by its meaning, and other bodies by their bytes.
func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }
