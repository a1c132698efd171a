package lambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrEvent matches errors from an event of another kind than the adapter's: a
// function wired to the wrong source. Decoding it would yield an empty event in
// silence, and may lose who is calling, so the handler is not run.
var ErrEvent = errors.New("event of another kind")

// notA says that an event isn't what want names, and why.
func notA(want, why string) error {
	return fmt.Errorf("lambda: %w: want %s: %s", ErrEvent, want, why)
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
