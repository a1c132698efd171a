package guides_test

import (
	"context"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
)

// A key of two namespaces is two operations, in one store; the partition keys begin
// with the namespace, as policies need it.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	store := new(idem.MemoryStore)
	orders := idem.New(store, func(o *idem.Options) { o.Namespace = "orders" })
	refunds := idem.New(store, func(o *idem.Options) { o.Namespace = "refunds" })
	ran := 0
	handler := func(context.Context) (idem.Response, error) { ran++; return idem.Response{Status: 201}, nil }
	for _, engine := range []*idem.Engine{orders, refunds, orders} {
		if _, err := engine.Do(t.Context(), idem.Request{Key: "7f0c", Method: "POST", Scope: "jane"}, handler); err != nil {
			t.Fatal(err)
		}
	}
	if ran != 2 {
		t.Errorf("the handlers ran %d times", ran)
	}
	begin := make(map[string]int)
	for pk := range store.Records() {
		namespace, _, _ := strings.Cut(strings.TrimPrefix(pk, "v1#"), "#")
		begin["v1#"+namespace+"#"]++
	}
	if begin["v1#orders#"] != 1 || begin["v1#refunds#"] != 1 || len(begin) != 2 {
		t.Errorf("the records begin with %v", begin)
	}
}
