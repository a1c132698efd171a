package lambda

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/base/secrets"
)

// Adapter pairs an event with its response and makes both neutral, so that an answer
// stored through one kind of event is replayed through any other.
//
// [HTTPAPI], [REST], [FunctionURL] and [ALB] are the adapters for HTTP. [Direct]
// makes adapters for your own events. Write your own adapter from scratch, or change
// a copy of an existing adapter, for example to take the scope from the event:
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
	// Request makes an event neutral. Body is the body that the client sent,
	// decoded. Set Identity only to an identity that the source has verified. The
	// tenant of the invocation's lambdacontext replaces an empty Tenant.
	//
	// The adapters of this package make no Snapshot for an engine that stores no requests
	// ([idem.Options.Resumable]). ctx says whether the engine stores requests: pass ctx on.
	//
	// An error that matches [ErrEvent] says that the event is of another kind: no
	// client waits for an HTTP answer, so [Handler] returns the error. Any other
	// error is answered with 400, or by the engine's table of errors; the returned
	// request should then hold the parts that could be read.
	Request func(ctx context.Context, ev Ev) (idem.Request, error)

	// Event is the inverse of Request: it makes an event that Request would turn
	// into r again, for a handler that runs a second time from its stored request. r
	// holds the stored parts: no key, only the headers that the engine stores, and
	// Snapshot as Request made it. nil: requests can't be run again from their
	// records.
	Event func(r idem.Request) (Ev, error)

	// Response makes the handler's own answer neutral. An error is a mistake of the
	// handler, and counts as if the handler had returned it.
	Response func(re Re) (idem.Response, error)

	// Reply converts a neutral answer, first or replayed, into the event's form.
	Reply func(r idem.Response) Re

	// typed marks answers that are values and errors instead of HTTP; see Direct.
	typed bool
	// ownScope leaves the function out of the scope of a typed adapter's keys.
	ownScope bool
	// shared is BodyKey.shared of a typed adapter's key. nil: clients choose no keys.
	shared func(body []byte) bool
}

// request calls Request and adds the tenant of the invocation, so that users' adapters need not
// add it. A request needs a snapshot only if the engine may store the request.
func (a *Adapter[Ev, Re]) request(ctx context.Context, ev Ev, stored bool) (idem.Request, error) {
	if !stored {
		ctx = context.WithValue(ctx, unstoredKey{}, struct{}{})
	}
	req, err := a.Request(ctx, ev)
	if req.Tenant == "" {
		req.Tenant = tenantOf(ctx)
	}
	return req, err
}

// A snapshot ([idem.Request.Snapshot]) holds the parts of an event that a handler needs when it
// runs again and that the neutral request lacks: the verified identity in the source's form,
// and the source's data about the route. A snapshot is JSON in the event's form, so decoding
// restores the parts.
//
// A snapshot has no credentials: no tokens, API keys, access keys or certificates. It omits
// values in a Lambda authorizer's context that look like tokens by name or form.

// withoutTokens returns an authorizer's context without the values that are tokens.
func withoutTokens(context map[string]any) map[string]any {
	if context == nil {
		return nil
	}
	kept := make(map[string]any, len(context))
	for name, v := range context {
		text, _ := v.(string)
		if inner, ok := v.(map[string]any); ok {
			v = withoutTokens(inner)
		}
		if name == "principalId" || name == "sub" || !secrets.Named(name) && !secrets.Token(text) { // the caller is in the scope, too
			kept[name] = v
		}
	}
	return kept
}

// answer converts the answer of a phase to a Response.
func (a *Adapter[Ev, Re]) answer(v any) (idem.Response, error) {
	re, ok := v.(Re)
	if !ok {
		return idem.Response{}, fmt.Errorf("a %T is no %T", v, re)
	}
	return a.Response(re)
}

type unstoredKey struct{}

// storable reports whether a request may be stored. A GET or HEAD is never stored, since
// the engine ignores its key.
func storable(ctx context.Context, method string) bool {
	return method != http.MethodGet && method != http.MethodHead && ctx.Value(unstoredKey{}) == nil
}

// take returns the snapshot s as JSON, or nil if s is empty.
func take(s any) ([]byte, error) {
	b, err := json.Marshal(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: the verified identity has no JSON form: %w", idem.ErrRequest, err)
	case string(b) == "{}":
		return nil, nil
	}
	return b, nil
}

// restore puts a snapshot back into ev. Without a snapshot the event has no
// identity.
func restore(snapshot []byte, ev any) error {
	if len(snapshot) == 0 {
		return nil
	}
	if err := json.Unmarshal(snapshot, ev); err != nil {
		return fmt.Errorf("lambda: %w: the stored snapshot: %w", idem.ErrCorrupt, redact.Decoding(err))
	}
	return nil
}

// certSnapshot is the identity in a client's certificate, for mutual TLS.
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

// unlike returns s, or "" if s equals the neutral request's value.
func unlike(s, neutral string) string {
	if s == neutral {
		return ""
	}
	return s
}
