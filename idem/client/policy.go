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
	"syscall"
)

// DefaultRetried is what is retried by default: 409, since the original may
// still be running, 429, and 5xx.
func DefaultRetried(status int) bool {
	return status == http.StatusConflict || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// checkRequest finds what no transport can send, which would otherwise look
// like a network error and be retried.
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

// permanent reports whether a retry is sure to meet err again: what the
// transport refuses, what fails the check of a certificate, and what was
// cancelled. All else is taken for the network's fault.
func permanent(req *http.Request, err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, errBadTransport) || isTLS(err) {
		return true
	}
	// The errors by which a transport refuses a protocol have no type.
	return !isHTTP(req) && !isNetwork(err)
}

func isTLS(err error) bool {
	return isCertificate(err) || isA[tls.RecordHeaderError](err) || isA[tls.AlertError](err) ||
		isOp(err, "local error", "remote error") // crypto/tls: an alert
}

// isCertificate reports whether err comes from the check of a certificate.
func isCertificate(err error) bool {
	return isA[*tls.CertificateVerificationError](err) || isA[*tls.ECHRejectionError](err) || isA[x509.UnknownAuthorityError](err) ||
		isA[x509.HostnameError](err) || isA[x509.CertificateInvalidError](err) || isA[x509.SystemRootsError](err)
}

func isNetwork(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isA[net.Error](err) || isA[syscall.Errno](err)
}

// isUnsent reports whether err comes from making a connection: there was none
// to send the request on.
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
