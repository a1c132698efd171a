package idem_test

import (
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// The store of somebody else doesn't know the handlers of its process. One engine still
// knows its own.
func TestTwoUnnamedHandlersOfOneEngine(t *testing.T) {
	t.Parallel()
	e := idem.New(struct{ store.Store }{&idem.MemoryStore{}}, callertest.Anybody)
	if err := e.AddOperation("Direct", ""); err != nil {
		t.Fatal(err)
	}
	if err := e.AddOperation("Direct", ""); err == nil {
		t.Error("two handlers without a name share their keys")
	}
}
