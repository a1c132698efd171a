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

// Adapter converts the events of one source to requests, and converts answers to the source's
// responses. The converted forms are the same for all sources, so that an answer stored through
// one kind of event is replayed through any other.
//
// [HTTPAPI], [REST], [FunctionURL] and [ALB] are the adapters for HTTP. [Direct] makes adapters
// for your own events. To write an adapter, fill in all functions, or change a copy of an
// existing adapter, for example to take the scope from the event:
//
//	api := lambda.HTTPAPI // a copy: the original must not be changed
//	api.Request = func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (idem.Request, error) {
//		req, err := lambda.HTTPAPI.Request(ctx, ev)
//		req.Scope = tenantOf(ev)
//		return req, err
//	}
//
// All functions except Event are required. All functions must be safe for concurrent use.
type Adapter[Ev, Re any] struct {
	// Request converts an event to a request. Set Body to the decoded body that the client sent.
	// Set Identity only to an identity that the source has verified. If Tenant is empty, the
	// engine uses the tenant of the invocation's lambdacontext.
	//
	// The adapters of this package set Snapshot only if ctx says that the engine stores requests
	// ([idem.Options.Resumable]): if you call these adapters, pass ctx on.
	//
	// An error that matches [ErrEvent] says that the event is of another kind. Then no client waits
	// for an HTTP answer, so [Handler] returns the error. Any other error is answered with 400, or
	// as the engine's table of errors says. With such an error, Request should also return the
	// parts of the request that could be read.
	Request func(ctx context.Context, ev Ev) (idem.Request, error)

	// Event is the inverse of Request: it makes an event from a stored request r, for a handler
	// that runs a second time. Request would turn this event into r again. r has no key; r has the
	// headers that the engine stores, and the Snapshot that Request made. If Event is nil, requests
	// can't be run again from their records.
	Event func(r idem.Request) (Ev, error)

	// Response converts the handler's answer to the engine's form. An error of Response has the
	// same effect as an error of the handler.
	Response func(re Re) (idem.Response, error)

	// Reply converts an answer, first or replayed, to the source's response.
	Reply func(r idem.Response) Re

	// typed says that answers are values and errors instead of HTTP; see Direct.
	typed bool
	// ownScope says that the scope of a typed adapter's keys doesn't contain the function.
	ownScope bool
	// shared is BodyKey.shared of the typed adapter's key. It is nil if the key isn't a BodyKey or
	// has no such function, or if DirectOptions.Scope is set.
	shared func(body []byte) bool
}

// Adapter.request calls Request, and adds the invocation's tenant, so that users' adapters needn't
// add it. stored says whether the engine may store the request: only then does the request need a
// snapshot.
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

// If a handler runs again, it needs parts of the event that the other fields of [idem.Request]
// lack: the verified identity in the source's form, and the source's data about the route. A
// snapshot ([idem.Request.Snapshot]) holds these parts. A snapshot is JSON in the event's form, so
// decoding restores the parts.
//
// A snapshot has no credentials: no tokens, API keys, access keys or certificates. If a value in a
// Lambda authorizer's context looks like a token by its name or form, the snapshot omits it.

// withoutTokens returns an authorizer's context without the values that look like tokens.
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
		if name == "principalId" || name == "sub" || !secrets.Named(name) && !secrets.Token(text) { // principalId and sub are kept: they name the caller, and the scope contains that name anyway
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

// restore puts a snapshot back into ev. If there is no snapshot, ev gets no identity.
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

// unlike(s, neutral) returns s, or "" if the two are equal.
func unlike(s, neutral string) string {
	if s == neutral {
		return ""
	}
	return s
}
