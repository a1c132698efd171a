package dynamo

import (
	"context"
	"io"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const readsBodies = "samekey: bodies that are read"

// readBodies has net/http read the bodies of requests, and not have them write
// themselves. The SDK closes a request's body as soon as the answer's header is there.
// If net/http looks for the body's end after that, as it may with a body of more than
// 4 KB, a body that writes itself (io.WriterTo) says io.EOF, which is an error there.
// net/http then closes the connection, and the answer can't be read: "use of closed
// network connection". The SDK repeats such a call, although it was applied.
func readBodies(stack *middleware.Stack) error {
	if _, there := stack.Build.Get(readsBodies); there {
		return nil
	}
	return stack.Build.Add(middleware.BuildMiddlewareFunc(readsBodies,
		func(ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler) (middleware.BuildOutput, middleware.Metadata, error) {
			if req, ok := in.Request.(*smithyhttp.Request); ok {
				if body, ok := req.GetStream().(io.ReadSeeker); ok {
					req, err := req.SetStream(struct{ io.ReadSeeker }{body})
					if err != nil {
						return middleware.BuildOutput{}, middleware.Metadata{}, err
					}
					in.Request = req
				}
			}
			return next.HandleBuild(ctx, in)
		}), middleware.Before)
}
