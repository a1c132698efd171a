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

// Adapter converts the events of one source to requests, and converts answers to the
// source's responses. Requests and answers have the same form for all sources. So an
// answer to one kind of event can be replayed to another kind.
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
	// Request converts an event to a request. Set Body to the decoded body that the
	// client sent. Set Identity only to an identity that the source has verified. If
	// Request leaves Tenant empty, the tenant of the invocation's lambdacontext is
	// used.
	//
	// The adapters of this package learn from ctx whether the engine stores requests
	// ([idem.Options.Resumable]), and set Snapshot only then. So if your Request calls
	// the Request of such an adapter, pass ctx on.
	//
	// If the event is of another kind, Request returns an error that matches
	// [ErrEvent]. [Handler] returns this error, because no client waits for an HTTP
	// answer. After any other error, [idem.Engine.Refuse] makes the client's answer.
	// But if the engine doesn't act on the request or only observes
	// ([idem.ModeObserve]), the handler runs. With any other error, Request should also
	// return the parts of the request that it could read.
	Request func(ctx context.Context, ev Ev) (idem.Request, error)

	// Event is the inverse of Request: it makes an event from a request r that a record
	// has stored, so that the handler can run again. r has the Snapshot that Request
	// made and the headers that the engine stores, but no key. If Request got this
	// event, it would return r again. If Event is nil, handlers can't run again from a
	// record.
	Event func(r idem.Request) (Ev, error)

	// Response converts the handler's answer to the engine's form. If Response returns
	// an error, this has the same effect as an error of the handler, with two
	// exceptions. If the engine doesn't act on the request, the handler's answer is
	// returned unchanged. With an adapter of [Direct], the operation is done, but its
	// result isn't kept ([idem.ErrNotKept]).
	Response func(re Re) (idem.Response, error)

	// Reply converts a first or a replayed answer to the source's response.
	Reply func(r idem.Response) Re

	// typed says that answers are values and errors instead of HTTP; see Direct.
	typed bool
	// ownScope says that DirectOptions.Scope has replaced the function in the scope of
	// keys.
	ownScope bool
	// shared is the field shared of the BodyKey that was passed to Direct. It is nil if
	// the key is no BodyKey, or if DirectOptions.Scope is set.
	shared func(body []byte) bool
}

// Adapter.request calls Request. If Request sets no tenant, Adapter.request adds the
// invocation's tenant. The parameter stored says whether the engine may store the
// request. If the engine may not, Request omits the snapshot.
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

// A snapshot ([idem.Request.Snapshot]) holds parts of the event that a handler needs
// when it runs again, and that the other fields of [idem.Request] lack: the verified
// identity in the source's form, and the source's data about the route. A snapshot is
// JSON in the event's form, so decoding a snapshot into an event restores these parts.
//
// A snapshot has no credentials: no tokens, API keys, access keys or certificates. From
// a Lambda authorizer's context, the snapshot omits values that look like a token by
// their name or form.

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
		if name == "principalId" || name == "sub" || !secrets.Named(name) && !secrets.Token(text) { // principalId and sub are kept, because they name the caller, and the scope contains this name anyway
			kept[name] = v
		}
	}
	return kept
}

// Adapter.answer converts the answer of a phase to a Response.
func (a *Adapter[Ev, Re]) answer(v any) (idem.Response, error) {
	re, ok := v.(Re)
	if !ok {
		return idem.Response{}, fmt.Errorf("a %T is no %T", v, re)
	}
	return a.Response(re)
}

type unstoredKey struct{}

// storable reports whether a request may be stored. A GET or HEAD is never stored,
// because the engine ignores a key in it.
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

// restore decodes a snapshot into ev. Without a snapshot, ev stays unchanged.
func restore(snapshot []byte, ev any) error {
	if len(snapshot) == 0 {
		return nil
	}
	if err := json.Unmarshal(snapshot, ev); err != nil {
		return fmt.Errorf("lambda: %w: the stored snapshot: %w", idem.ErrCorrupt, redact.Decoding(err))
	}
	return nil
}

// certSnapshot is the identity in a client's certificate of mutual TLS.
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
