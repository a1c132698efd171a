package check

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func (e *examination) missing(ctx context.Context) error { return e.keyless(ctx, call{}) }

// examination.keyless sends c without a key.
func (e *examination) keyless(ctx context.Context, c call) error {
	a, err := e.send(ctx, c)
	switch {
	case err != nil:
		return err
	case a.ok() && !e.template.KeyOptional:
		e.breaks("missing-ran", was(a)+"; if the API documents that keys are optional, give --key-optional")
	case a.refused():
		e.blame(a, "idempotency_key_required")
		if a.status != http.StatusBadRequest {
			e.breaks("missing-status", strconv.Itoa(a.status))
		}
	case !a.ok():
		e.breaks("missing-status", strconv.Itoa(a.status))
	}
	return nil
}

func (e *examination) malformed(ctx context.Context) error {
	long := e.key("long-")
	long += strings.Repeat("x", 256-len(long))
	for _, bad := range []struct {
		rule   string
		values []string
	}{
		{"key-empty", []string{""}},
		{"key-long", []string{e.spelled(long)}},
		{"key-twice", []string{e.spelled(e.key("twice")), e.spelled(e.key("twice-2"))}},
		{"key-ascii", []string{e.spelled(e.key("ascii-é"))}},
	} {
		a, err := e.send(ctx, call{keys: bad.values})
		switch {
		case err != nil:
			return err
		case a.ok():
			e.breaks(bad.rule, was(a))
		case a.status != http.StatusBadRequest:
			e.breaks("key-status", fmt.Sprintf("%s: %d", strings.TrimPrefix(bad.rule, "key-"), a.status))
		default:
			e.blame(a, "")
		}
	}
	return nil
}
