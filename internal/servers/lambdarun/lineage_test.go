package lambdarun

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A function's SDK sends the trace header of its invocation, with the lineage in it. At the
// seventeenth invocation of a chain the function doesn't run; another chain, and another
// function, aren't concerned.
func TestLineage(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *Config) { c.Name = "worker" })
	header := "Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=1:00000000:99"
	in := func(ctx context.Context) InvokerFunc {
		return func(_ context.Context, payload []byte) ([]byte, error) { return f.Invoke(Traced(ctx, header), payload) }
	}
	for n := 1; n <= MaxLineage; n++ {
		header = mustInvoke(t, in(t.Context()), testEvent{Op: "describe"}).TraceID
		if Lineage(header, "worker") != n || Lineage(header, "other") != 0 {
			t.Fatalf("invocation %d has %q", n, header)
		}
	}
	if !strings.HasPrefix(header, "Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=1:") || !strings.HasSuffix(header, ":16|1:00000000:99") {
		t.Errorf("the last has %q", header)
	}
	if _, err := in(t.Context())(t.Context(), []byte(`{}`)); !errors.Is(err, ErrRecursive) {
		t.Errorf("the next one: %v", err)
	}
	if got := mustInvoke(t, f, testEvent{Op: "describe"}).TraceID; Lineage(got, "worker") != 1 {
		t.Errorf("a chain of its own has %q", got)
	}
}
