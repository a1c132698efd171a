package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"
)

// maxRetryAfter is the longest Retry-After that a transport waits for.
const maxRetryAfter = time.Minute

// budgetRatio is how many retries each request adds to the budget.
const budgetRatio = 0.1

func retried(status int) bool {
	return status == http.StatusConflict || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// checkRequest returns an error for a request that no transport can send. Without this
// check, the base transport's error would look like a network error, and the request
// would be retried.
func checkRequest(req *http.Request) error {
	switch {
	case req.URL == nil:
		return fmt.Errorf("%w: no URL", ErrRequest)
	case isHTTP(req) && req.URL.Host == "":
		return fmt.Errorf("%w: no host in the URL", ErrRequest)
	case req.Method != "" && !isToken(req.Method):
		return fmt.Errorf("%w: method %q", ErrRequest, req.Method)
	}
	for name, values := range req.Header {
		if !isToken(name) {
			return fmt.Errorf("%w: header name %q", ErrRequest, name)
		}
		for _, v := range values {
			if !isValue(v) {
				return fmt.Errorf("%w: control character in header %s", ErrRequest, name)
			}
		}
	}
	return nil
}

func isHTTP(req *http.Request) bool { return req.URL.Scheme == "http" || req.URL.Scheme == "https" }

// permanent(req, err) reports whether a retry will certainly fail with err again. An
// error is permanent if the request was cancelled, if TLS failed (as in the check of a
// certificate), if the base transport returned nothing, or if the URL's scheme is
// unsupported. All other errors are treated as network errors.
func permanent(req *http.Request, err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, errBadTransport) || isTLS(err) {
		return true
	}
	// The base transport's error for an unsupported scheme has no type. For a scheme
	// other than http and https, each error is therefore permanent, except network
	// errors.
	return !isHTTP(req) && !isNetwork(err)
}

func isTLS(err error) bool {
	return isCertificate(err) || isA[tls.RecordHeaderError](err) || isA[tls.AlertError](err) ||
		isOp(err, "local error", "remote error") // crypto/tls uses these names for an alert
}

// isCertificate reports whether err comes from the check of a certificate.
func isCertificate(err error) bool {
	return isA[*tls.CertificateVerificationError](err) || isA[*tls.ECHRejectionError](err) || isA[x509.UnknownAuthorityError](err) ||
		isA[x509.HostnameError](err) || isA[x509.CertificateInvalidError](err) || isA[x509.SystemRootsError](err)
}

func isNetwork(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isA[net.Error](err)
}

// isUnsent reports whether err comes from connecting, so that the request was not
// sent.
func isUnsent(err error) bool {
	return isCertificate(err) || isA[*net.DNSError](err) || isOp(err, "dial", "proxyconnect")
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isOp(err error, ops ...string) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && slices.Contains(ops, e.Op)
}
