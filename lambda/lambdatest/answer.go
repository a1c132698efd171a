package lambdatest

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
)

type answer struct {
	http     bool
	status   int
	header   http.Header
	replayed bool           // whether an HTTP answer has the header Idempotent-Replayed: true
	failures int            // number of records that a batch reports as failed
	rest     map[string]any // an HTTP answer without its headers and cookies, as JSON
	raw      []byte
}

func read(re any) (a answer, err error) {
	if a.raw, err = json.Marshal(re); err != nil {
		return a, err
	}
	var members struct {
		StatusCode        *int
		Headers           map[string]string
		MultiValueHeaders map[string][]string
		BatchItemFailures []any
	}
	if json.Unmarshal(a.raw, &members) != nil { // not a JSON object
		return a, nil //nolint:nilerr // compared by bytes
	}
	a.failures = len(members.BatchItemFailures)
	if members.StatusCode == nil {
		return a, nil
	}
	a.http, a.status, a.header = true, *members.StatusCode, make(http.Header)
	for name, v := range members.Headers {
		a.header.Set(name, v)
	}
	for name, v := range members.MultiValueHeaders {
		a.header[http.CanonicalHeaderKey(name)] = v
	}
	a.replayed = a.header.Get(idem.ReplayedHeader) == "true"
	a.header.Del(idem.ReplayedHeader)
	if err := json.Unmarshal(a.raw, &a.rest); err != nil {
		return a, err
	}
	for _, name := range []string{"headers", "multiValueHeaders", "cookies"} { // diff compares headers separately, and cookies not at all
		delete(a.rest, name)
	}
	return a, nil
}

// answer.failed returns an error if the answer makes a client or a source try again.
func (a answer) failed() error {
	switch {
	case a.status >= http.StatusInternalServerError:
		return fmt.Errorf("answered %d: %s", a.status, a.raw)
	case a.failures > 0:
		return fmt.Errorf("%d records have failed: %s", a.failures, a.raw)
	}
	return nil
}

// diff describes how two answers differ. diff ignores headers that only the first answer has,
// since not all headers are stored.
func diff[Re any](first, again Re) string {
	a, err := read(first)
	b, berr := read(again)
	if err != nil || berr != nil || !a.http || !b.http {
		return cmp.Diff(string(a.raw), string(b.raw))
	}
	for name := range a.header {
		if b.header[name] == nil {
			delete(a.header, name)
		}
	}
	return cmp.Diff(a.rest, b.rest) + cmp.Diff(a.header, b.header)
}
