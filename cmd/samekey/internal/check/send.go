package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	keyHeader      = "Idempotency-Key"
	expiresHeader  = "Idempotency-Expires"
	replayedHeader = "Idempotent-Replayed"
)

// call is one request of an examination. Each field that is set changes a part of the
// template's request.
type call struct {
	keys   []string // values of Idempotency-Key; empty: no key
	body   []byte   // nil: the template's body
	path   string
	method string
	header http.Header // headers that replace the template's headers of the same names
	bare   bool        // without the template's headers and body
}

// answer is an answer of the API, read to the end.
type answer struct {
	status int
	header http.Header
	body   []byte
	at     time.Time
	code   string // error code that the commerce contracts demand of this answer; "" if they demand none
}

func (a *answer) ok() bool { return a.status >= 200 && a.status < 300 }

func (a *answer) refused() bool { return a.status >= 400 && a.status < 500 }

// answer.busy reports whether the answer is a 429 or 503, which ask for a retry.
func (a *answer) busy() bool {
	return a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable
}

func (a *answer) is(b *answer) bool { return a.status == b.status && bytes.Equal(a.body, b.body) }

// answer.ran reports whether a proves a new run. The parameter first is an earlier
// answer under the same key. A new run is proved if a is a success and the bodies of a
// and first differ.
func (a *answer) ran(first *answer) bool { return a.ok() && !bytes.Equal(a.body, first.body) }

// answer.replays reports whether a is a replay of the answer first. A replay is a
// success that is marked as a replay, or that has the same non-empty body as first.
func (a *answer) replays(first *answer) bool {
	return a.ok() && (a.header.Get(replayedHeader) == "true" || len(first.body) > 0 && bytes.Equal(a.body, first.body))
}

// examination.once sends c and reads the answer. If there is no answer, the error says
// why, in a text without secrets.
func (e *examination) once(ctx context.Context, c call) (*answer, error) {
	if n := e.sent.Add(1); n > int64(e.opt.Requests) {
		e.sent.Add(-1)
		return nil, fmt.Errorf("the limit of %d requests is reached: raise --requests", e.opt.Requests)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.opt.Timeout, errSlow)
	defer cancel()
	req, err := e.request(ctx, c)
	if err != nil {
		return nil, errors.New("can't send the request: " + e.shown(err.Error()))
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, e.explain(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // read as far as it is wanted
	a := &answer{status: resp.StatusCode, header: resp.Header}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, e.opt.MaxBody+1))
	a.at = time.Now()
	switch {
	case int64(len(a.body)) > e.opt.MaxBody:
		return nil, fmt.Errorf("the answer (status %d) has more than %d bytes", a.status, e.opt.MaxBody)
	case err != nil:
		return nil, fmt.Errorf("the answer (status %d) breaks off: %w", a.status, e.explain(ctx, err))
	}
	return a, nil
}

func (e *examination) request(ctx context.Context, c call) (*http.Request, error) {
	u, header, body := *e.url, e.template.Header.Clone(), e.template.Body
	if c.bare {
		header, body = make(http.Header), nil
	}
	if c.path != "" {
		u.Path, u.RawPath = c.path, ""
	}
	if c.body != nil {
		body = c.body
	}
	method := e.template.Method
	if c.method != "" {
		method = c.method
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // if GetBody is set, net/http may send the request again
	req.Header = header
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "samekey-check")
	}
	if e.template.Origin != "" {
		req.Header.Set("Origin", e.template.Origin)
	}
	maps.Copy(req.Header, c.header)
	if len(c.keys) > 0 {
		req.Header[keyHeader] = c.keys
	}
	return req, nil
}

// examination.send sends c. If the API answers 429 or 503, send repeats c, at most
// twice.
func (e *examination) send(ctx context.Context, c call) (*answer, error) {
	const tries = 3
	for i := 1; ; i++ {
		a, err := e.once(ctx, c)
		if err != nil || !a.busy() {
			return a, err
		}
		e.judgeRetryAfter(a)
		if i == tries {
			return nil, fmt.Errorf("the API answered %d to each of %d tries", a.status, tries)
		}
		if err := pause(ctx, retryAfter(a)); err != nil {
			return nil, err
		}
	}
}

// longest is the maximum of the wait before a request is sent again.
const longest = 10 * time.Second

// retryAfter returns the wait that the answer's Retry-After asks for; one second if
// Retry-After is missing or invalid. The wait is at least 100 ms and at most longest.
func retryAfter(a *answer) time.Duration {
	d, ok := toldWait(a)
	if !ok {
		d = time.Second
	}
	return min(max(d, 100*time.Millisecond), longest)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// toldWait reads the header Retry-After, which is a number of seconds or a date.
func toldWait(a *answer) (time.Duration, bool) {
	v := strings.TrimSpace(a.header.Get("Retry-After"))
	if n, err := strconv.Atoi(v); err == nil && n >= 0 {
		return min(time.Duration(n), 1<<20) * time.Second, true
	}
	if at, err := http.ParseTime(v); err == nil {
		return at.Sub(a.at), true
	}
	return 0, false
}

// examination.key returns a key of this run. The key contains purpose, which tells an
// operator what the key was for.
func (e *examination) key(purpose string) string { return e.opt.Prefix + e.opt.Name + "-" + purpose }

// examination.spelled returns key in the form that the API accepts, with or without
// quotes.
func (e *examination) spelled(key string) string {
	if e.quotes {
		return `"` + key + `"`
	}
	return key
}

func (e *examination) keyed(key string) call { return call{keys: []string{e.spelled(key)}} }

// examination.shown prepares a text from the API or the network for a report: it
// removes secrets and control characters, and cuts the text at 160 characters.
func (e *examination) shown(s string) string {
	for _, secret := range e.secrets {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			if len(form) > 3 {
				s = strings.ReplaceAll(s, form, "[hidden]")
			}
		}
	}
	s = strings.Map(func(c rune) rune {
		if !strconv.IsPrint(c) {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	const limit = 160
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "…"
	}
	return s
}
