package apigateway

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/aws/aws-lambda-go/events"
)

// httpResponse is the answer of an HTTP API or REST API to the client.
type httpResponse struct {
	status     int
	header     http.Header
	body       []byte
	multiValue bool // the function used multiValueHeaders
}

// gatewayHeaders are set by API Gateway itself. A function's values for them are dropped.
var gatewayHeaders = []string{"Connection", "Content-Length", "Keep-Alive", "Trailer", "Transfer-Encoding", "Upgrade"}

// parseHTTPAPIResponse reads a function's result. A JSON object with a statusCode is a
// response in payload format 2.0. Any other result, JSON or not, is the body of an answer
// with status 200 and type application/json. The error names the part of the result that
// API Gateway would refuse.
func parseHTTPAPIResponse(payload []byte) (*httpResponse, error) {
	var fields map[string]json.RawMessage
	isObject := json.Unmarshal(payload, &fields) == nil
	if !isObject || fields["statusCode"] == nil {
		return &httpResponse{
			status: http.StatusOK,
			header: http.Header{"Content-Type": {"application/json"}},
			body:   payload,
		}, nil
	}
	var resp events.APIGatewayV2HTTPResponse
	if err := json.Unmarshal(payload, &resp); err != nil {
		return nil, err
	}
	// A status below 200 is refused, because Go's server wouldn't send it as the
	// final answer.
	if resp.StatusCode < 200 || resp.StatusCode > 599 {
		return nil, fmt.Errorf("status code %d", resp.StatusCode)
	}

	header := make(http.Header)
	// Names that differ only in case are one header. Sorting keeps the order of its
	// values the same each time.
	for _, name := range slices.Sorted(maps.Keys(resp.Headers)) {
		header.Add(name, resp.Headers[name])
	}
	for _, name := range slices.Sorted(maps.Keys(resp.MultiValueHeaders)) {
		for _, v := range resp.MultiValueHeaders[name] {
			// If a function puts a header into both maps, send each value once.
			if !slices.Contains(header.Values(name), v) {
				header.Add(name, v)
			}
		}
	}
	if len(resp.Cookies) > 0 {
		header["Set-Cookie"] = slices.Concat(resp.Cookies, header["Set-Cookie"])
	}
	for _, name := range gatewayHeaders {
		header.Del(name)
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "text/plain; charset=utf-8")
	}

	body := []byte(resp.Body)
	if resp.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(resp.Body); err != nil {
			return nil, errors.New("body is not base64")
		}
	}
	return &httpResponse{
		status: resp.StatusCode, header: header, body: body,
		multiValue: len(resp.MultiValueHeaders) > 0,
	}, nil
}

// httpResponse.write sends the response. An error is ignored: the client may be gone.
func (r *httpResponse) write(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	if r.status != http.StatusNoContent && r.status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(r.body)))
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body)
}
