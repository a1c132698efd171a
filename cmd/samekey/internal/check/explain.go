package check

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

var errSlow = errors.New("the API is too slow")

// examination.explain returns the reason why there is no answer. The reason omits the
// URL, because the query may be secret.
func (e *examination) explain(ctx context.Context, err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	cause := context.Cause(ctx)
	host := e.url.Host
	switch {
	case errors.Is(cause, errSlow):
		return fmt.Errorf("no answer within %v; the API may have carried out the request", e.opt.Timeout)
	case errors.Is(cause, errTotal):
		return fmt.Errorf("the examination reached the limit of %v: raise --total", e.opt.Total)
	case cause != nil:
		return errors.New("interrupted; the API may have carried out the last request")
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return fmt.Errorf("no host has the name %s", e.url.Hostname())
		}
		return fmt.Errorf("can't resolve the name %s: %s", e.url.Hostname(), e.shown(dns.Err))
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("the certificate of %s is not trusted: %s", host, e.shown(bad.Err.Error()))
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return fmt.Errorf("%s doesn't speak TLS: should its URL begin with http://?", host)
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok {
		return fmt.Errorf("%s refuses TLS: %s", host, e.shown(alert.Error()))
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens at %s", host)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%s closed the connection before the answer was complete", host)
	}
	return fmt.Errorf("no HTTP answer from %s: %s", host, e.shown(err.Error()))
}

// examination.unusable returns the reason why no examination is possible after the
// answer a to the template's request; nil if an examination is possible.
func (e *examination) unusable(a *answer) error {
	mediaType, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	switch {
	case a.status >= 300 && a.status < 400:
		to := "elsewhere"
		if u, err := e.url.Parse(a.header.Get("Location")); err == nil && a.header.Get("Location") != "" {
			to = "to " + e.shown(place(u))
		}
		return fmt.Errorf("the API redirects %s (%d), but samekey check follows no redirects: give the final URL", to, a.status)
	case strings.EqualFold(strings.TrimSpace(mediaType), "text/html"):
		return fmt.Errorf("the answer (%d) is HTML: is this the URL of an API?", a.status)
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return fmt.Errorf("the API answers %d: does the request lack credentials?", a.status)
	case !a.ok():
		return fmt.Errorf("the API answers %d to your request, but an examination needs a success: correct --body, --header or the URL", a.status)
	}
	return nil
}
