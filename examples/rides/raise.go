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

// raiseError is a switch for tests, in the query or in the body. The value is a recovery
// point: before that point the request fails, as if by a bug, after all earlier phases.
//
// The fingerprint and the stored request don't contain the switch. So the same
// request without the switch is a retry, and a completer's run doesn't fail.
const raiseError = "raise_error"

// recoveryPoints are in order, and include the recovery points of every operation.
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

// adapter returns [lambda.HTTPAPI] without raise_error in requests.
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

// withoutParameter removes a parameter from a query.
func withoutParameter(query, name string) string {
	pairs := strings.Split(query, "&")
	return strings.Join(slices.DeleteFunc(pairs, func(pair string) bool { return strings.HasPrefix(pair, name+"=") }), "&")
}

// withoutMember removes the first member with a name from a JSON object, and changes no
// other byte. The fingerprint of a retry without the member must be the same.
func withoutMember(object, name string) string {
	const space = " \t\r\n"
	dec := json.NewDecoder(strings.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return object
	}
	for first := true; ; first = false {
		begin := dec.InputOffset() // after the brace, or the earlier member
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
			// the next member takes the place
			member := strings.TrimLeft(object[begin:], space)
			return object[:len(object)-len(member)] + strings.TrimLeft(next, space)
		}
		return before + after
	}
}
