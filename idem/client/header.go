package client

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Names of response headers that package idem sends.
const (
	replayedHeader = "Idempotent-Replayed"
	expiresHeader  = "Idempotency-Expires"
	statusHeader   = "Idempotency-Status"
)

// lifetimeMargin is subtracted from a key's lifetime, since HTTP dates are truncated to
// seconds, and a request takes time to arrive.
const lifetimeMargin = 2 * time.Second

// retryAfter reads the Retry-After header: seconds or an HTTP date (RFC 9110, 10.2.3). A
// date is compared with the server's time, or with now if the server doesn't send its time.
// The result wait is never negative, and ok is false if there is no usable header.
func retryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, _ := strconv.ParseInt(value, 10, 64) // if the number doesn't fit, ParseInt returns the largest int64
		if seconds > math.MaxInt64/int64(time.Second) {
			return math.MaxInt64, true
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(at.Sub(clock(h, now)), 0), true
}

// The function expires returns the end of the key's lifetime by the client's clock. It
// adds the rest of the lifetime to sent, the time at which the request was sent. If the
// server sends its time, the rest is counted from that time, so neither clock needs to
// be right.
func expires(h http.Header, sent time.Time) (until time.Time, ok bool) {
	at, err := http.ParseTime(h.Get(expiresHeader))
	if err != nil {
		return time.Time{}, false
	}
	return sent.Add(at.Sub(clock(h, sent))), true
}

// clock returns the server's time, or now if the server doesn't send its time.
func clock(h http.Header, now time.Time) time.Time {
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		return date
	}
	return now
}

// shouldRetry reads the header by which a server tells the client to retry, or not to.
func shouldRetry(h http.Header) (yes, no bool) {
	said := strings.ToLower(strings.TrimSpace(h.Get("Stripe-Should-Retry")))
	return said == "true", said == "false"
}

func isKeyIgnored(h http.Header) bool { return strings.EqualFold(h.Get(statusHeader), "ignored") }

// isUnstored reports whether the server could not store its answer.
func isUnstored(h http.Header) bool { return strings.EqualFold(h.Get(statusHeader), "unstored") }

// isToken reports whether s is valid as an HTTP method or as a header's name.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

func isValue(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
