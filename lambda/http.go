package lambda

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/samekey/samekey/idem"
)

// anyRoute returns the route of a request whose event has no route pattern. Routes
// appear in logs, in metrics and in the list of operations that wait for people. So the
// route is never the path, because a path may name a person, and the number of paths is
// unlimited.
func anyRoute(method string) string { return method + " /*" }

// encodedQuery encodes decoded parameters. If multi isn't empty, it has all parameters, and single
// is ignored.
func encodedQuery(single map[string]string, multi map[string][]string) string {
	return url.Values(parameters(single, multi)).Encode()
}

// rawQuery joins parameters that are in the client's encoding. It sorts the names,
// because map order is random. The order of names doesn't matter to the engine, which
// sorts queries before it compares them.
func rawQuery(single map[string]string, multi map[string][]string) string {
	var b strings.Builder
	params := parameters(single, multi)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		for _, value := range params[name] {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			b.WriteString(name + "=" + value)
		}
	}
	return b.String()
}

func parameters(single map[string]string, multi map[string][]string) map[string][]string {
	if len(multi) > 0 {
		return multi
	}
	params := make(map[string][]string, len(single))
	for name, value := range single {
		params[name] = []string{value}
	}
	return params
}

// splitQuery splits a query and leaves names and values as the client encoded them.
// Values of the same name keep their order.
func splitQuery(raw string) url.Values {
	values := make(url.Values)
	for pair := range strings.SplitSeq(raw, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			values.Add(name, value)
		}
	}
	return values
}

// decodedQuery splits a query and decodes names and values. It leaves malformed escapes
// unchanged.
func decodedQuery(raw string) url.Values {
	values := make(url.Values)
	for pair := range strings.SplitSeq(raw, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			values.Add(unescaped(name), unescaped(value))
		}
	}
	return values
}

func unescaped(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// joinedParameters returns a decoded query with one value for each name; commas join
// several values, as in payload format 2.0.
func joinedParameters(raw string) map[string]string {
	if raw == "" {
		return nil
	}
	single := make(map[string]string)
	for name, values := range decodedQuery(raw) {
		single[name] = strings.Join(values, ",")
	}
	return single
}

// lastOf returns the last value of each name in m. In their maps with one value for
// each name, REST APIs and load balancers send the last value too.
func lastOf[M url.Values | http.Header](m M) map[string]string {
	if len(m) == 0 {
		return nil
	}
	single := make(map[string]string, len(m))
	for name, values := range m {
		if len(values) > 0 {
			single[name] = values[len(values)-1]
		}
	}
	return single
}

// firstLabel returns the part of a domain name before the first dot.
func firstLabel(domain string) string {
	label, _, _ := strings.Cut(domain, ".")
	return label
}

// header merges an event's two maps under canonical names. If a name is in both maps,
// header takes the values of multi, because single has only the last one. If a map has
// a name in several spellings, header merges the values in a fixed order.
func header(single map[string]string, multi map[string][]string) http.Header {
	h := make(http.Header, max(len(single), len(multi)))
	for _, name := range slices.Sorted(maps.Keys(single)) {
		h.Add(name, single[name])
	}
	all := make(http.Header, len(multi))
	for _, name := range slices.Sorted(maps.Keys(multi)) {
		for _, value := range multi[name] {
			all.Add(name, value)
		}
	}
	maps.Copy(h, all)
	return h
}

// v2Headers returns the headers of a request in the form of payload format 2.0:
// lower-case names, values joined by commas.
func v2Headers(h http.Header) map[string]string {
	headers := make(map[string]string, len(h))
	for name, values := range h {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	return headers
}

// joined returns h with one value for each name. Several values are joined by commas,
// which doesn't change their meaning (RFC 9110, 5.3). Values of Set-Cookie can't be
// joined, so joined returns the last one.
func joined(h http.Header) map[string]string {
	single := make(map[string]string, len(h))
	for name, values := range h {
		switch {
		case len(values) == 0:
		case name == setCookie:
			single[name] = values[len(values)-1]
		default:
			single[name] = strings.Join(values, ", ")
		}
	}
	return single
}

const setCookie = "Set-Cookie"

// withCookies puts the cookies of a request into the header Cookie.
func withCookies(h http.Header, cookies []string) http.Header {
	if len(cookies) > 0 {
		h["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	return h
}

// response converts a handler's answer to an [idem.Response]. It adds cookies, the
// separate list of payload format 2.0, to the header Set-Cookie. The default status is
// 200. If a body is declared as base64 but isn't base64, response takes the body
// unchanged. An error would only make the client repeat a request whose effect has
// happened.
func response(status int, h http.Header, cookies []string, body string, isBase64 bool) (idem.Response, error) {
	if len(cookies) > 0 {
		h[setCookie] = append(h[setCookie], cookies...)
	}
	b, err := decoded(body, isBase64)
	if err != nil {
		b = []byte(body)
	}
	if status == 0 {
		status = http.StatusOK
	}
	return idem.Response{Status: status, Header: h, Body: b}, nil
}

// decoded returns the bytes of a body in an event or in a handler's answer.
func decoded(body string, isBase64 bool) ([]byte, error) {
	switch {
	case body == "":
		return nil, nil
	case !isBase64:
		return []byte(body), nil
	}
	b, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		return nil, fmt.Errorf("%w: body is not base64: %w", idem.ErrRequest, err)
	}
	return b, nil
}

// textBody returns the body of an answer, as text or in base64. A body that isn't text
// is in base64, because a JSON string would change its bytes. A large text is in base64
// if base64 is shorter.
func textBody(b []byte) (body string, isBase64 bool) {
	const small = 128 << 10 // even if every byte is a control character, the answer stays below 1 MB
	if utf8.Valid(b) && (len(b) <= small || !inflates(b)) {
		return string(b), false
	}
	return base64.StdEncoding.EncodeToString(b), true
}

// inflates reports whether b has so many control characters that base64 is shorter than
// a JSON string. In JSON a control character takes six bytes. The difference matters
// only for large bodies, because an invocation's answer has at most 1 MB for a load
// balancer, and 6 MB for other sources.
func inflates(b []byte) bool {
	n := 0
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			n++
		}
	}
	return n > len(b)/15 // JSON adds 5·n bytes, base64 adds a third of len(b)
}

// eventBody is the inverse of decoded. The parameter was tells whether the original body came in
// base64; if so, the result is in base64 too.
func eventBody(b []byte, was bool) (body string, isBase64 bool) {
	if !was && utf8.Valid(b) {
		return string(b), false
	}
	return base64.StdEncoding.EncodeToString(b), true
}
