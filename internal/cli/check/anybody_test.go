package check_test

import (
	"context"

	"github.com/samekey/samekey/idem"
)

// anybody is a caller: whoever has another token is another one.
func anybody(o *idem.Options) {
	o.Scope = func(_ context.Context, r *idem.Request) (string, error) {
		return "token:" + r.Header.Get("Authorization"), nil
	}
	o.CallerFromOp = true
}
