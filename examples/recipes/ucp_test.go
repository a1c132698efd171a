package recipes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// A tool of a UCP merchant runs once for each key in its arguments; refusals are -32000.
func TestUCPTool(t *testing.T) {
	t.Parallel()
	records, runs := &downable{}, 0
	e := idem.New(records, idem.UCP, func(o *idem.Options) { o.Logger = slog.New(slog.DiscardHandler) })
	call := func(caller, meta, session string) (string, *RPCError) {
		params := fmt.Appendf(nil, `{"name":"complete_checkout","_meta":{"progressToken":%d},"arguments":{"meta":{%s},"id":%q}}`, runs, meta, session)
		result, refused := UCPTool(t.Context(), e, caller, params, func(context.Context) (any, error) {
			runs++
			return map[string]int{"run": runs}, nil
		})
		return string(result), refused
	}
	const key, other = `"idempotency-key":"5f0ad0f3-7a08-4a5e-8a0f-6c1f2f0c9b1e"`, `"idempotency-key":"9b1c2d3e-4f50-4617-a829-3b4c5d6e7f80"`
	for i, tt := range []struct {
		caller, meta, session, want, code string
	}{
		{"jane", key, "A", `{"run":1}`, ""},
		{"jane", key, "A", `{"run":1}`, ""},
		{"omar", key, "A", `{"run":2}`, ""},
		{"jane", other, "A", `{"run":3}`, ""},
		{"jane", key, "B", "", "idempotency_conflict"},
		{"jane", "", "A", "", "idempotency_key_required"},
		{"jane", `"idempotency-key":7`, "A", "", "idempotency_key_required"},
		{"jane", `"idempotency-key":"too short"`, "A", "", "idempotency_key_invalid"},
	} {
		got, refused := call(tt.caller, tt.meta, tt.session)
		if got != tt.want || (refused != nil) != (tt.code != "") || refused != nil && (refused.Code != -32000 || refused.Data.Code != tt.code || refused.Data.Content == "") {
			t.Errorf("%d: %s, %+v; want %s %s", i, got, refused, tt.want, tt.code)
		}
	}
	records.down = true
	if _, refused := call("jane", key, "C"); refused == nil || refused.Data.Code != "store_unavailable" || refused.Data.RetryAfter < 1 || runs != 3 {
		t.Errorf("without the store: %+v, %d runs", refused, runs)
	}
}

// downable is a store that can't be reached while it is down.
type downable struct {
	idem.MemoryStore

	down bool
}

func (s *downable) Claim(ctx context.Context, c store.Claim) (*store.Record, error) {
	if s.down {
		return nil, errors.New("no route to the table")
	}
	return s.MemoryStore.Claim(ctx, c)
}

func (s *downable) Load(ctx context.Context, pk string) (*store.Record, error) {
	if s.down {
		return nil, errors.New("no route to the table")
	}
	return s.MemoryStore.Load(ctx, pk)
}
