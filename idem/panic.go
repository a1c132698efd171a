package idem

import (
	"context"
	"net/http"
	"runtime/debug"
)

// catching returns fn with its panics turned into errors and stored in caught. As
// after an error, the attempt is released and the client is told to retry.
// http.ErrAbortHandler, which makes net/http cut the connection, continues, and
// so does runtime.Goexit.
func (e *core) catching(route string, fn func(context.Context) (Response, error), caught **panicked) func(context.Context) (Response, error) {
	return func(ctx context.Context) (resp Response, err error) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // a panic is that value, never one that wraps it
				panic(v) //nolint:forbidigo // as above
			}
			*caught = &panicked{v}
			e.log.ErrorContext(ctx, "handler panicked", "route", route, "error", *caught, "stack", string(debug.Stack()))
			resp, err = Response{}, *caught
		}()
		return fn(ctx)
	}
}
