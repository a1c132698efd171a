package apigateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// remappedHeaders are the response headers that a REST API renames.
var remappedHeaders = []string{"Authorization", "Connection", "Content-Md5", "Date", "Host", "Server", "User-Agent", "Www-Authenticate"}

// parseRESTResponse reads a function's result, which must be an object with no members
// except those of a proxy response. It decodes a body in base64 if decode is true,
// which means that the client accepts binary data.
func parseRESTResponse(payload []byte, decode bool) (*httpResponse, error) {
	var resp struct {
		StatusCode        *json.Number            `json:"statusCode"`
		Headers           map[string]restHeader   `json:"headers"`
		MultiValueHeaders map[string][]restHeader `json:"multiValueHeaders"`
		Cookies           json.RawMessage         `json:"cookies"` // allowed, but ignored: only format 2.0 has cookies
		Body              *string                 `json:"body"`
		IsBase64Encoded   *bool                   `json:"isBase64Encoded"`
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.DisallowUnknownFields()
	if trimmed := bytes.TrimSpace(payload); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, errors.New("not an object")
	}
	if err := dec.Decode(&resp); err != nil {
		return nil, err
	}
	status := http.StatusOK
	if resp.StatusCode != nil {
		n, err := strconv.Atoi(resp.StatusCode.String())
		// A status below 200 is refused, because Go's server would send it as a
		// preliminary answer.
		if err != nil || n < 200 || n > 599 {
			return nil, fmt.Errorf("status code %q", resp.StatusCode.String())
		}
		status = n
	}

	header := make(http.Header)
	for _, name := range slices.Sorted(maps.Keys(resp.Headers)) {
		header[http.CanonicalHeaderKey(name)] = []string{string(resp.Headers[name])}
	}
	// A header in MultiValueHeaders replaces the header of the same name in Headers.
	for _, name := range slices.Sorted(maps.Keys(resp.MultiValueHeaders)) {
		values := make([]string, 0, len(resp.MultiValueHeaders[name]))
		for _, v := range resp.MultiValueHeaders[name] {
			values = append(values, string(v))
		}
		header[http.CanonicalHeaderKey(name)] = values
	}
	for _, name := range remappedHeaders {
		if values, ok := header[name]; ok {
			header["X-Amzn-Remapped-"+name] = values
			delete(header, name)
		}
	}
	for _, name := range gatewayHeaders {
		header.Del(name)
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}

	var body []byte
	if resp.Body != nil {
		body = []byte(*resp.Body)
	}
	if decode && resp.IsBase64Encoded != nil && *resp.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
			return nil, errors.New("body is not base64")
		}
	}
	return &httpResponse{status: status, header: header, body: body}, nil
}

// restHeader is the value of a header: a text, a number or a bool.
type restHeader string

func (h *restHeader) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err == nil {
		*h = restHeader(s)
		return nil
	}
	if strings.ContainsAny(string(data[:1]), "[{") {
		return errors.New("a header's value is no text")
	}
	*h = restHeader(data)
	return nil
}
