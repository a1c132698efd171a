package apigateway

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// httpEvent is aws-lambda-go's event type without requestContext.authentication. The
// original type always writes that member, even with an empty client certificate.
type httpEvent struct {
	events.APIGatewayV2HTTPRequest
	RequestContext httpEventContext `json:"requestContext"`
}

type httpEventContext struct {
	events.APIGatewayV2HTTPRequestContext
	Authentication *struct{} `json:"authentication,omitempty"`
	// Authorizer is raw JSON, because aws-lambda-go's type can't hold {"lambda":null},
	// the value for a Lambda authorizer's answer without a context.
	Authorizer json.RawMessage `json:"authorizer,omitempty"`
}

// setBody adds the body and the header content-length to an event.
func (e *httpEvent) setBody(contentType string, body []byte) {
	e.Headers["content-length"] = strconv.Itoa(len(body))
	e.Body, e.IsBase64Encoded = eventBody(contentType, body)
}

// httpAPI.event makes a request's event, in payload format 2.0 and without the body.
// The parameter path is decoded.
func (a *httpAPI) event(r *http.Request, requestID, routeKey, path string, params map[string]string) httpEvent {
	now := a.now().UTC()
	sourceIP := hostname(r.RemoteAddr)
	domain := a.opts.DomainName
	if domain == "" {
		domain = hostname(r.Host)
	}
	prefix, _, _ := strings.Cut(domain, ".")

	return httpEvent{
		APIGatewayV2HTTPRequest: events.APIGatewayV2HTTPRequest{
			Version:               "2.0",
			RouteKey:              routeKey,
			RawPath:               path,
			RawQueryString:        r.URL.RawQuery,
			Cookies:               eventCookies(r.Header),
			Headers:               a.eventHeaders(r, sourceIP),
			QueryStringParameters: eventQuery(r.URL.RawQuery),
			PathParameters:        params,
			StageVariables:        a.opts.StageVariables,
		},
		RequestContext: httpEventContext{APIGatewayV2HTTPRequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey:     routeKey,
			AccountID:    a.opts.AccountID,
			Stage:        a.opts.Stage,
			RequestID:    requestID,
			APIID:        a.opts.APIID,
			DomainName:   domain,
			DomainPrefix: prefix,
			Time:         now.Format("02/Jan/2006:15:04:05 -0700"),
			TimeEpoch:    now.UnixMilli(),
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
				Method:    r.Method,
				Path:      path,
				Protocol:  r.Proto,
				SourceIP:  sourceIP,
				UserAgent: r.UserAgent(),
			},
		}},
	}
}

// hopHeaders are headers that events of format 2.0 leave out: headers of a single
// connection, and Cookie, because cookies have a field of their own.
var hopHeaders = map[string]bool{
	"Connection":        true,
	"Cookie":            true,
	"Keep-Alive":        true,
	"Proxy-Connection":  true,
	"Te":                true,
	"Trailer":           true,
	"Transfer-Encoding": true,
	"Upgrade":           true,
}

// eventHeaders returns an event's headers: those of the request, and those that API
// Gateway adds. Names are in lower case. The values of a name are joined.
func (a *httpAPI) eventHeaders(r *http.Request, sourceIP string) map[string]string {
	h := make(map[string]string, len(r.Header)+6)
	for name, values := range r.Header {
		if !hopHeaders[name] {
			h[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	h["host"] = r.Host
	h["content-length"] = strconv.FormatInt(max(r.ContentLength, 0), 10)
	h["x-forwarded-for"], h["x-forwarded-proto"], h["x-forwarded-port"] = forwarded(r, h["x-forwarded-for"], sourceIP)
	if h["x-amzn-trace-id"] == "" {
		h["x-amzn-trace-id"] = a.newTraceID()
	}
	return h
}

// forwarded returns the values of the headers X-Forwarded-For, -Proto and -Port, which API
// Gateway adds. before is the request's own X-Forwarded-For.
func forwarded(r *http.Request, before, sourceIP string) (client, proto, port string) {
	client, proto, port = sourceIP, "http", "80"
	if before != "" {
		client = before + ", " + sourceIP
	}
	if r.TLS != nil {
		proto, port = "https", "443"
	}
	if _, p, err := net.SplitHostPort(r.Host); err == nil {
		port = p
	}
	return client, proto, port
}

// eventCookies splits all Cookie headers into single cookies.
func eventCookies(h http.Header) []string {
	var cookies []string
	for _, line := range h["Cookie"] {
		for cookie := range strings.SplitSeq(line, ";") {
			if cookie = strings.TrimSpace(cookie); cookie != "" {
				cookies = append(cookies, cookie)
			}
		}
	}
	return cookies
}

// eventQuery returns the decoded parameters of a query. If a name has several values, they
// are joined in their order. A name or value that can't be decoded stays as it is.
func eventQuery(raw string) map[string]string {
	if raw == "" {
		return nil
	}
	query := make(map[string]string)
	for name, value := range queryPairs(raw) {
		if before, ok := query[name]; ok {
			value = before + "," + value
		}
		query[name] = value
	}
	return query
}

// queryPairs returns an iterator over a query's decoded parameters, in their order.
func queryPairs(raw string) iter.Seq2[string, string] {
	unescape := func(s string) string {
		if u, err := url.QueryUnescape(s); err == nil {
			return u
		}
		return s
	}
	return func(yield func(string, string) bool) {
		for pair := range strings.SplitSeq(raw, "&") {
			name, value, _ := strings.Cut(pair, "=")
			if pair != "" && !yield(unescape(name), unescape(value)) {
				return
			}
		}
	}
}

// eventBody returns a body as the event contains it: as text or in base64. AWS doesn't
// document which types stay text. The list here comes from published experiments.
// Form data, types such as application/problem+json, and bodies without a type become base64.
func eventBody(contentType string, body []byte) (text string, isBase64 bool) {
	if len(body) == 0 {
		return "", false
	}
	mediaType, _, _ := strings.Cut(contentType, ";")
	mediaType = strings.ToLower(strings.TrimSpace(mediaType))
	switch {
	case strings.HasPrefix(mediaType, "text/"):
		return string(body), false
	case mediaType == "application/json", mediaType == "application/xml", mediaType == "application/javascript":
		return string(body), false
	default:
		return base64.StdEncoding.EncodeToString(body), true
	}
}

// decodePath decodes every escape of a path except %25 (the percent sign), as HTTP APIs do.
func decodePath(escaped string) string {
	decoded, err := url.PathUnescape(strings.ReplaceAll(escaped, "%25", "%2525"))
	if err != nil {
		return escaped
	}
	return decoded
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
