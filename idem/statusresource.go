package idem

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/state"
)

// Status returns the state of the operation of r's key, without running the handler. If
// the operation is done, Status returns the stored answer as a replay. While an attempt
// holds the operation, or if a completer will finish it, Status returns 202 with the
// recovery point. Otherwise Status returns an error: [ErrStuck], [ErrNotKept],
// [ErrKeyUnknown], or [ErrUnfinished] if only the client's retry continues the operation.
// In [ModeOff] the error is [ErrUnprotected], since it isn't known whether the operation
// exists.
//
// r needs a Key and the data that determine the scope, because only the sender of the
// operation's request may see the operation. Status compares no fingerprint, since r
// isn't the operation's request.
//
// The callers of [OneScope] share a scope, so whoever knows a key could see the key's
// answer. Status allows this only if [Options.StatusURL] is set. Otherwise Status
// reports every key of these callers as unknown.
func (e *Engine) Status(ctx context.Context, r Request) (Result, error) {
	return e.status(ctx, r, false)
}

// Engine.status is Status. The parameter served says that the request came through
// ServeStatus.
func (e *Engine) status(ctx context.Context, r Request, served bool) (Result, error) {
	if err := checkKey(r.Key, true); err != nil {
		return Result{}, &Error{Op: "key", Err: err}
	}
	if e.core.opt.Mode == ModeOff {
		return Result{}, &Error{Op: "status", Err: ErrUnprotected}
	}
	caller, err := e.core.names.claimsBy.callerOf(ctx, &r)
	if err != nil {
		return Result{}, e.core.refusesNobody(ctx, &r, err)
	}
	a := e.core.attemptAt(&r)
	a.ask.served = served
	a.ask.home, a.ask.unattended = e.core.names.place(&r, &e.core.names.claimsBy, caller), true
	if a.ask.other, err = e.core.names.other(ctx, &r, a.ask.home.pk); err != nil {
		return Result{}, err
	}
	a.times.arrives(ctx)
	rec, v, err := a.status(ctx, &a.ask.home)
	if err == nil && v == state.Claimable && a.ask.other != nil {
		rec, v, err = a.status(ctx, a.ask.other)
	}
	answers := a.answers("")
	switch {
	case err != nil:
		return Result{}, err
	case v == state.Claimable:
		return Result{}, recordError("status", a.ask.home.pk, ErrKeyUnknown)
	case v == state.InFlight:
		return answers.accepted(rec), nil
	case v == state.TooSoon || v == state.TakeOver:
		if state.Completable(rec) {
			return answers.accepted(rec), nil
		}
		return answers.unfinished(rec, errors.New("nobody works on it")) // nobody continues the operation until the client sends the request again
	default:
		return answers.answer(ctx, rec, v)
	}
}

// attempt.status reads and judges the record at one of the key's places.
func (a *attempt) status(ctx context.Context, at *place) (*store.Record, state.Verdict, error) {
	if at.whose.Kind == scope.One && a.core.opt.StatusURL == "" {
		return nil, state.Claimable, nil
	}
	rec, err := a.writer().read(ctx, at.pk, a.times.lastCall)
	if err != nil {
		return nil, 0, unavailable("status", at.pk, err)
	}
	v, err := a.ask.judge(rec, "")
	return rec, v, err
}

// ServeStatus serves [Engine.Status] as the HTTP resource at [Options.StatusURL]. The key
// follows StatusURL in r's path, unless r.Key is set. Adapters and [Engine.StatusHandler]
// use ServeStatus. Methods other than GET and HEAD get a 405.
func (e *Engine) ServeStatus(ctx context.Context, r Request) Response {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		resp := Response{
			Status: http.StatusMethodNotAllowed, Body: []byte("the status of an operation can only be read\n"),
			Header: http.Header{"Allow": {"GET, HEAD"}, "Content-Type": {"text/plain; charset=utf-8"}, "Cache-Control": {"no-store"}},
		}
		e.core.opt.CORS.Allow(&resp, r.Header)
		return resp
	}
	if r.Key == "" {
		r.Key = e.core.opt.statusKey(r.Path)
	}
	r.Route = r.Method + " " + e.core.opt.StatusURL + "{key}" // must not contain the key, but some adapters set Route to the path
	res, err := e.status(ctx, r, true)
	if err != nil {
		res = Result{Response: contract{e.core}.problem(ctx, &r, err)}
	}
	res.addHeaders(e.core.opt.KeyHeader, "")
	contract{e.core}.dress(&r, &res)
	return res.Response
}

// StatusHandler is [Engine.ServeStatus] for net/http.
func (e *Engine) StatusHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		write(w, e.ServeStatus(r.Context(), httpRequest(r, nil)))
	})
}

// statusKey returns the key in the path of the status resource, or "", which is never a
// key. A gateway may have put a stage in front of the path of StatusURL.
func (o *Options) statusKey(path string) string {
	u, err := url.Parse(o.StatusURL)
	if err != nil || u.Path == "" {
		return ""
	}
	_, escaped, _ := strings.Cut(path, u.EscapedPath())
	key, _ := url.PathUnescape(escaped)
	if strings.HasPrefix(key, `"`) {
		key, _, _ = parseKey([]string{key})
	}
	return key
}

// statusSegment returns a key as a segment of the status resource's path. The keys "."
// and ".." are quoted as in the header, since clients would resolve them as relative
// paths. A key that begins with a double quote is quoted too, because statusKey removes
// the quotes of such a segment.
func statusSegment(key string) string {
	if key == "." || key == ".." || strings.HasPrefix(key, `"`) {
		key = quoted(key)
	}
	return url.PathEscape(key)
}

func validStatusURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("not a URL")
	case !strings.HasSuffix(u.Path, "/") || u.RawQuery != "" || u.Fragment != "":
		return errors.New(`must end in "/", after which the key follows`)
	case !strings.HasPrefix(u.Path, "/"):
		return errors.New("must be absolute, or begin with /")
	}
	return nil
}
