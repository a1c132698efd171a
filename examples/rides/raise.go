package rides

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// raiseError is a switch for tests, in the query or in the body: the name of
// the recovery point that shall not be reached. The request then fails there, as
// if the process had met a bug, with all before it done.
//
// It is not part of what is asked for: neither the fingerprint nor the stored
// request has it. So the same request without it is a retry, and a completer's
// run doesn't fail.
const raiseError = "raise_error"

// recoveryPoints in their order, with those that every operation has.
var recoveryPoints = [...]string{"started", rideCreated, chargeCreated, "finished"}

func (in input) checkRaise() error {
	if in.RaiseError != "" && !slices.Contains(recoveryPoints[:], in.RaiseError) {
		return fmt.Errorf("%s must be one of %s", raiseError, strings.Join(recoveryPoints[:], ", "))
	}
	return nil
}

// raise fails if the client has asked for a failure at this point.
func (in input) raise(point string) error {
	if in.RaiseError == point {
		return fmt.Errorf("%s: %s is not reached", raiseError, point)
	}
	return nil
}

// adapter is [lambda.HTTPAPI], but for raise_error.
func adapter() lambda.Adapter[request, response] {
	a := lambda.HTTPAPI
	a.Request = func(ctx context.Context, ev request) (idem.Request, error) {
		ev.RawQueryString = withoutParameter(ev.RawQueryString, raiseError)
		if body, err := decoded(ev); err == nil {
			ev.Body = withoutMember(body, raiseError)
			if ev.IsBase64Encoded {
				ev.Body = base64.StdEncoding.EncodeToString([]byte(ev.Body))
			}
		}
		return lambda.HTTPAPI.Request(ctx, ev)
	}
	return a
}

// withoutParameter cuts a parameter out of a query.
func withoutParameter(query, name string) string {
	pairs := strings.Split(query, "&")
	return strings.Join(slices.DeleteFunc(pairs, func(pair string) bool { return strings.HasPrefix(pair, name+"=") }), "&")
}

// withoutMember cuts the first member of a name out of a JSON object, and leaves
// every other byte as it is: the fingerprint of a retry without the member is
// made of these.
func withoutMember(object, name string) string {
	const space = " \t\r\n"
	dec := json.NewDecoder(strings.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return object
	}
	for first := true; ; first = false {
		begin := dec.InputOffset() // behind the brace, or the member before
		if !dec.More() {
			return object
		}
		var value json.RawMessage
		key, err := dec.Token()
		if err != nil || dec.Decode(&value) != nil {
			return object
		}
		if key != name {
			continue
		}
		before, after := object[:begin], object[dec.InputOffset():]
		if next, more := strings.CutPrefix(strings.TrimLeft(after, space), ","); first && more {
			// The next member takes its place.
			member := strings.TrimLeft(object[begin:], space)
			return object[:len(object)-len(member)] + strings.TrimLeft(next, space)
		}
		return before + after
	}
}
