package lambda

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/samekey/samekey/idem"
)

// BodyKey finds the key in a body, which names the work itself: [JSONKey],
// [JSONRPCKey], [MCPToolKey], [AppSyncKey] and [StateKey] are there.
//
//	lambda.SQS.WithBodyKey(lambda.JSONKey("/order/id"))
//	lambda.Direct[Order, Receipt](lambda.JSONKey("/order/id"))
//	idem.New(store, func(o *idem.Options) { o.KeyFrom = lambda.JSONKey("/order/id").From }) // HTTP
//
// A value that is missing, empty, or neither a text nor an integer is an error that
// names its path ([idem.ErrKeyInvalid]), in every [idem.KeyMode]: it never makes a key
// that all such bodies share. The functions must be safe for concurrent use.
type BodyKey struct {
	// Key names the work that a body asks for. Required.
	Key func(body []byte) (string, error)

	// Same is what of a body must be the same under one key; an error refuses the
	// body. nil: all of it. See [BodyKey.Comparing].
	Same func(body []byte) ([]byte, error)
}

// Comparing is a copy of k for bodies of which parts change with each delivery, such
// as the time of sending: only the values that pointers (RFC 6901) lead to must be the
// same under one key ([BodyKey.Same]), as JSON by its meaning. One that is missing in
// both is the same. Take in whatever decides what is done, such as the amount. It
// panics if there is no pointer, or one of them isn't sound.
func (k BodyKey) Comparing(pointers ...string) BodyKey {
	if len(pointers) == 0 {
		panic("lambda: BodyKey.Comparing: no pointer") //nolint:forbidigo // a mistake in the program
	}
	paths := parsePointers("BodyKey.Comparing", pointers)
	k.Same = func(body []byte) ([]byte, error) {
		var all []byte
		for _, p := range paths {
			v, err := p.find(body)
			switch {
			case errors.Is(err, errAbsent):
				all = append(all, "absent\n"...)
				continue
			case err != nil:
				return nil, err
			}
			if v, err = canonical(p.text, v); err != nil {
				return nil, err
			}
			all = append(append(all, v...), '\n') // which no canonical form has
		}
		return all, nil
	}
	return k
}

// From finds the key in the body of an HTTP request whose header has none. It is for
// [idem.Options.KeyFrom].
func (k BodyKey) From(r *idem.Request) (string, error) {
	key, err := keyOf(k.Key(r.Body))
	if err == nil {
		err = k.compare(r)
	}
	if err != nil {
		return unreadable, err
	}
	return key, nil
}

// compare has r compared by what must be the same of its body.
func (k BodyKey) compare(r *idem.Request) (err error) {
	if k.Same == nil {
		return nil
	}
	if r.Same, err = k.Same(r.Body); err != nil {
		return &idem.Error{Op: "request", Err: fmt.Errorf("%w: %w", idem.ErrRequest, err)}
	}
	return nil
}

// WithBodyKey is a copy of b that finds keys in its records' bodies: a message
// without the envelopes of SNS and EventBridge, an event's detail, a stream's data. Of
// S3 and DynamoDB it is the JSON that their batches compare.
func (b Batch[Ev, Rec, Re]) WithBodyKey(k BodyKey) Batch[Ev, Rec, Re] {
	if b.Key = nil; k.Key == nil || b.Request == nil {
		return b // WrapEach says so
	}
	request := b.Request
	b.Key = func(rec Rec) (string, error) {
		req, err := request(context.Background(), rec)
		if err != nil {
			return "", err
		}
		return k.Key(req.Body)
	}
	b.Request = func(ctx context.Context, rec Rec) (idem.Request, error) {
		req, err := request(ctx, rec)
		if err == nil {
			err = k.compare(&req)
		}
		return req, err
	}
	return b
}

// digested begins a key that isn't the text it was made of.
const digested = "sha256:"

// textKey is a key of texts: the text itself, if there is one and it may be a key.
func textKey(parts ...string) string {
	if len(parts) == 1 && plainKey(parts[0]) {
		return parts[0]
	}
	return digested + digestKey(parts...)
}

func plainKey(s string) bool {
	bad := func(c rune) bool { return c <= ' ' || c > '~' }
	return s != "" && len(s) <= idem.DefaultMaxKey && !strings.ContainsFunc(s, bad) && !strings.HasPrefix(s, digested)
}

// canonical is the form of a JSON value in which equal ones are the same bytes.
func canonical(where string, v []byte) ([]byte, error) {
	c, ok := idem.CanonicalJSON(v)
	if !ok {
		return nil, fmt.Errorf("%s: different parsers may read it differently", where)
	}
	return c, nil
}
