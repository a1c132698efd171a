package lambdalocal

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// httpEvent is the event type of aws-lambda-go without its description of a
// client certificate, which is not marked as optional there.
type httpEvent struct {
	events.APIGatewayV2HTTPRequest
	RequestContext httpEventContext `json:"requestContext"`
}

type httpEventContext struct {
	events.APIGatewayV2HTTPRequestContext
	Authentication *struct{} `json:"authentication,omitempty"`
}

// event makes the payload 2.0 event of a request. path is decoded.
func (a *httpAPI) event(
	r *http.Request, requestID, routeKey, path string, params map[string]string, identity *Identity, body []byte,
) httpEvent {
	now := a.now().UTC()
	sourceIP := r.RemoteAddr
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		sourceIP = host
	}
	domain := a.opts.DomainName
	if domain == "" {
		domain = hostname(r.Host)
	}
	prefix, _, _ := strings.Cut(domain, ".")

	text, isBase64 := eventBody(r.Header.Get("Content-Type"), body)
	return httpEvent{
		APIGatewayV2HTTPRequest: events.APIGatewayV2HTTPRequest{
			Version:               "2.0",
			RouteKey:              routeKey,
			RawPath:               path,
			RawQueryString:        r.URL.RawQuery,
			Cookies:               eventCookies(r.Header),
			Headers:               a.eventHeaders(r, sourceIP, len(body)),
			QueryStringParameters: eventQuery(r.URL.RawQuery),
			PathParameters:        params,
			StageVariables:        a.opts.StageVariables,
			Body:                  text,
			IsBase64Encoded:       isBase64,
		},
		RequestContext: httpEventContext{APIGatewayV2HTTPRequestContext: events.APIGatewayV2HTTPRequestContext{
			RouteKey:     routeKey,
			AccountID:    a.opts.AccountID,
			Stage:        defaultRouteKey,
			RequestID:    requestID,
			Authorizer:   identity,
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

// hopHeaders belong to one connection; API Gateway does not pass them on.
// Cookies have a field of their own.
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

// eventHeaders lower-cases names, joins duplicates and adds what API Gateway
// adds.
func (a *httpAPI) eventHeaders(r *http.Request, sourceIP string, bodyLen int) map[string]string {
	h := make(map[string]string, len(r.Header)+6)
	for name, values := range r.Header {
		if !hopHeaders[name] {
			h[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	h["host"] = r.Host
	h["content-length"] = strconv.Itoa(bodyLen)
	if before := h["x-forwarded-for"]; before != "" {
		h["x-forwarded-for"] = before + ", " + sourceIP
	} else {
		h["x-forwarded-for"] = sourceIP
	}
	proto, port := "http", "80"
	if r.TLS != nil {
		proto, port = "https", "443"
	}
	if _, p, err := net.SplitHostPort(r.Host); err == nil {
		port = p
	}
	h["x-forwarded-proto"], h["x-forwarded-port"] = proto, port
	if h["x-amzn-trace-id"] == "" {
		h["x-amzn-trace-id"] = a.newTraceID()
	}
	return h
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

// eventQuery decodes the parameters and joins duplicates, in their order. What
// cannot be decoded stays as it is.
func eventQuery(raw string) map[string]string {
	if raw == "" {
		return nil
	}
	unescape := func(s string) string {
		if u, err := url.QueryUnescape(s); err == nil {
			return u
		}
		return s
	}
	query := make(map[string]string)
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, value = unescape(name), unescape(value)
		if before, ok := query[name]; ok {
			value = before + "," + value
		}
		query[name] = value
	}
	return query
}

// eventBody returns a body as the event carries it. The list of text types was
// found by others' trials on AWS, it is in no manual; notable on the side of
// base64 are form data, types like application/problem+json, and no type at all.
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

// decodePath decodes a path as HTTP APIs do: every escape but that of the
// percent sign itself, which stays %25.
func decodePath(escaped string) string {
	decoded, err := url.PathUnescape(strings.ReplaceAll(escaped, "%25", "%2525"))
	if err != nil {
		return escaped
	}
	return decoded
}

// hostname returns host without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
