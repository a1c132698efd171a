package idem

import (
	"context"
	"net/http"
	"runtime/debug"

	"github.com/samekey/samekey/internal/base/redact"
)

// panicked is a handler's panic as an error. It unwraps to nothing, since the
// value of a panic is not the handler's answer. The error's text goes to the log
// and into the record.
type panicked struct{ value any }

func (p *panicked) Error() string { return "handler " + redact.Panic(p.value) }

// catching returns fn with its panics turned into errors and stored in caught. As
// after an error, the attempt is released and the client is told to retry.
// http.ErrAbortHandler, which makes net/http cut the connection, continues, and
// so does runtime.Goexit.
func (e *Engine) catching(route string, fn func(context.Context) (Response, error), caught **panicked) func(context.Context) (Response, error) {
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
