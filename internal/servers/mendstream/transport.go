// Package mendstream corrects a mistake of DynamoDB Local 3.3.1. Its Streams API,
// unlike that of AWS, writes an empty map as {} instead of {"M":{}}. The SDK then
// decodes {} as the value of a random other attribute, so that a reader sees records
// that nobody wrote.
package mendstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Transport returns a transport for the HTTP client of a dynamodbstreams client. It sends
// requests through base, or http.DefaultTransport if base is nil, and mends the answers of
// GetRecords. Other answers, and answers that are not the expected JSON, pass unchanged.
func Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return transport{base}
}

type transport struct{ base http.RoundTripper }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "" ||
		!strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".GetRecords") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if cerr := resp.Body.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	body = mend(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Header.Del("X-Amz-Crc32") // it is the checksum of the original body
	return resp, nil
}

// CloseIdleConnections closes the idle connections of base.
func (t transport) CloseIdleConnections() {
	(&http.Client{Transport: t.base}).CloseIdleConnections()
}

func mend(body []byte) []byte {
	// without {} there is no empty map to mend
	if !bytes.Contains(body, []byte("{}")) {
		return body
	}
	var answer map[string]any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&answer); err != nil {
		return body
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return body
	}
	records, _ := answer["Records"].([]any)
	for _, record := range records {
		r, _ := record.(map[string]any)
		change, _ := r["dynamodb"].(map[string]any)
		for _, image := range []string{"Keys", "NewImage", "OldImage"} {
			attributes, _ := change[image].(map[string]any)
			mendMap(attributes)
		}
	}
	mended, err := json.Marshal(answer)
	if err != nil {
		return body
	}
	return mended
}

func mendMap(values map[string]any) {
	for _, v := range values {
		mendValue(v)
	}
}

func mendValue(v any) {
	value, ok := v.(map[string]any)
	if !ok {
		return
	}
	if len(value) == 0 {
		value["M"] = map[string]any{}
		return
	}
	// The elements of a map are attribute values whatever their names, even if a name
	// is "M".
	if m, ok := value["M"].(map[string]any); ok {
		mendMap(m)
	}
	if list, ok := value["L"].([]any); ok {
		for _, element := range list {
			mendValue(element)
		}
	}
}
