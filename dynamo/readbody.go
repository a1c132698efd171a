package dynamo

import (
	"context"
	"io"
	"net/http"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// readBodies has net/http read the bodies of requests, and not have them write
// themselves. The SDK closes a request's body as soon as the answer's header is there.
// If net/http looks for the body's end after that, as it may with a body of more than
// 4 KB, a body that writes itself (io.WriterTo) says io.EOF, which is an error there.
// net/http then closes the connection, and the answer can't be read: "use of closed
// network connection". The SDK repeats such a call, although it was applied.
//
// It comes last, since the SDK hashes a body that doesn't write itself through a buffer
// of 32 KB.
type readBodies struct{}

// ID implements [middleware.DeserializeMiddleware].
func (readBodies) ID() string { return "samekey: bodies that are read" }

// HandleDeserialize implements [middleware.DeserializeMiddleware].
func (readBodies) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	if req, ok := in.Request.(*smithyhttp.Request); ok {
		if body, ok := req.GetStream().(io.ReadSeeker); ok {
			other, err := empty.SetStream(struct{ io.ReadSeeker }{body})
			if err != nil {
				return middleware.DeserializeOutput{}, middleware.Metadata{}, err
			}
			other.Request, in.Request = req.Request, other
		}
	}
	return next.HandleDeserialize(ctx, in)
}

// empty is never changed: SetStream copies its request, and this one has nothing to copy.
var empty = smithyhttp.Request{Request: &http.Request{}}

func addReadBodies(stack *middleware.Stack) error {
	if _, there := stack.Deserialize.Get(readBodies{}.ID()); there {
		return nil
	}
	return stack.Deserialize.Add(readBodies{}, middleware.After)
}
