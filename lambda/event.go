package lambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/samekey/samekey/lambda/internal/rawjson"
)

// ErrEvent matches errors from an event of another kind than the adapter's: a
// function wired to the wrong source. Decoding it would yield an empty event in
// silence, and may lose who is calling, so the handler is not run.
var ErrEvent = errors.New("event of another kind")

// notA says that an event isn't what want names, and why.
func notA(want, why string) error {
	return fmt.Errorf("lambda: %w: want %s: %s", ErrEvent, want, why)
}

// origin is where a record says it comes from.
type origin struct{ service, id, arn string }

// checkOrigins holds each of n records to its source. A function that is wired
// to another one, or a record that couldn't be reported, must not go through in
// silence.
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

// decode reads an event. Types of aws-lambda-go that decode themselves panic on
// some of what isn't theirs.
func decode[Ev any](payload []byte) (ev Ev, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("lambda: %w: it can't be decoded; the payload is %s", ErrEvent, kind(payload))
		}
	}()
	if err := json.Unmarshal(payload, &ev); err != nil {
		return ev, fmt.Errorf("lambda: %w: %w; the payload is %s", ErrEvent, err, kind(payload))
	}
	return ev, nil
}

// kind says what a payload looks like, without any of its values but the name
// of a source, and bounded in length. It is for error messages only: nothing is
// decided by it.
func kind(payload []byte) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(payload, &members); err != nil {
		return "no JSON object"
	}
	var p struct {
		HTTPMethod string `json:"httpMethod"`
		DetailType string `json:"detail-type"`
		Records    []struct {
			EventSource string `json:"eventSource"` // SNS spells it EventSource
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
	_ = json.Unmarshal(payload, &p) // what has other types stays empty
	switch {
	case len(members) == 0:
		return "an empty object"
	case len(p.Records) > 0:
		return fmt.Sprintf("records of %.40q", p.Records[0].EventSource)
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

// encode marshals an answer as the runtime does for plain handlers.
func encode(re any) ([]byte, error) {
	b, err := rawjson.Encode(re)
	if err != nil {
		return nil, fmt.Errorf("lambda: %w", err)
	}
	return b, nil
}

// resourceName is the last part of an ARN, for people.
func resourceName(arn string) string {
	return arn[strings.LastIndexAny(arn, ":/")+1:]
}

// jsonHeader says that a body may be JSON, for engines that compare that by its
// meaning ([idem.Fingerprint.CanonicalJSON]). One that isn't counts by its bytes.
func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }
