package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem"
)

// Adapter pairs an event with its response and makes both neutral, so that an
// answer stored through one kind of event is replayed through any other.
//
// [HTTPAPI], [REST], [FunctionURL] and [ALB] are the adapters for HTTP, [Direct]
// makes those for events of one's own. An adapter of your own can be written from
// nothing, or from a copy of one of these, for instance to take the scope from
// the event:
//
//	api := lambda.HTTPAPI // a copy: the original must not be changed
//	api.Request = func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
//		req, err := lambda.HTTPAPI.Request(ctx, ev)
//		req.Scope = tenantOf(ev)
//		return req, err
//	}
//
// All functions but Event are required; all must be safe for concurrent use.
type Adapter[Ev, Re any] struct {
	// Request makes an event neutral. Body is what the client sent, decoded.
	// Identity is set from what the source has verified, or left empty. A Tenant
	// that is left empty is taken from the invocation's lambdacontext.
	//
	// An error that matches [ErrEvent] says that the event is of another kind:
	// nobody waits for an HTTP answer, so [Handler] returns the error. Any other
	// error is answered with 400, or as the engine's table has it, and the
	// request it comes with should then hold what could be read.
	Request func(ctx context.Context, ev Ev) (idem.Request, error)

	// Event is the inverse of Request: an event that Request would make r of
	// again, for a handler that is run a second time from its stored request. It
	// gets what the engine has kept: not the key, only the headers the engine is
	// told to keep, and Snapshot as Request made it. nil: requests can't be run
	// again from their records.
	Event func(r idem.Request) (Ev, error)

	// Response makes the handler's own answer neutral. An error is the
	// handler's mistake, and counts as if the handler had returned it.
	Response func(re Re) (idem.Response, error)

	// Reply puts a neutral answer, first or replayed, into the event's form.
	Reply func(r idem.Response) Re

	// typed answers are values and errors, and no HTTP: see Direct.
	typed bool
	// ownScope leaves the function out of the scope of a typed adapter's keys.
	ownScope bool
}

// request is Request, with the tenant of the invocation. It is put in here, so
// that adapters of one's own needn't know of it.
func (a *Adapter[Ev, Re]) request(ctx context.Context, ev Ev) (idem.Request, error) {
	req, err := a.Request(ctx, ev)
	if req.Tenant == "" {
		req.Tenant = tenantOf(ctx)
	}
	return req, err
}

// A snapshot ([idem.Request.Snapshot]) is the part of an event that its neutral
// request doesn't have and a handler that runs again must find: who was
// verified, by the source's own word, and what the source found out about the
// route. It is JSON in the event's own form, so to put it back is to decode it.
//
// It has no credentials: neither tokens nor API keys, access keys or
// certificates. What an authorizer has put into its context is there as it is.

// answer makes a Response of what a phase answers.
func (a *Adapter[Ev, Re]) answer(v any) (idem.Response, error) {
	re, ok := v.(Re)
	if !ok {
		return idem.Response{}, fmt.Errorf("a %T is no %T", v, re)
	}
	return a.Response(re)
}

// take returns the snapshot s, nil if there is nothing in it.
func take(method string, s any) ([]byte, error) {
	if method == http.MethodGet || method == http.MethodHead {
		return nil, nil // never stored, since no key acts on them
	}
	b, err := json.Marshal(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: what is verified has no JSON form: %w", idem.ErrRequest, err)
	case string(b) == "{}":
		return nil, nil
	}
	return b, nil
}

// restore puts a snapshot back into ev. Without one the event has nobody's
// identity.
func restore(snapshot []byte, ev any) error {
	if len(snapshot) == 0 {
		return nil
	}
	if err := json.Unmarshal(snapshot, ev); err != nil {
		return fmt.Errorf("lambda: %w: the stored snapshot: %w", idem.ErrCorrupt, err)
	}
	return nil
}

// certSnapshot is who a client's certificate says it is, for mutual TLS.
type certSnapshot struct {
	IssuerDN     string   `json:"issuerDN,omitempty"`
	SerialNumber string   `json:"serialNumber,omitempty"`
	SubjectDN    string   `json:"subjectDN,omitempty"`
	Validity     validity `json:"validity,omitzero"`
}

type validity struct {
	NotAfter  string `json:"notAfter,omitempty"`
	NotBefore string `json:"notBefore,omitempty"`
}

// unlike is s where it isn't what the neutral request says anyway.
func unlike(s, neutral string) string {
	if s == neutral {
		return ""
	}
	return s
}
