package dynamo_test

import (
	"testing"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// unnamedStores has a store of each kind: a test on the memory store refuses what a table's
// store refuses at cold start.
func unnamedStores(t *testing.T) map[string]store.Store {
	t.Helper()
	table, err := dynamo.New(&fakedynamo.DB{}, "unnamed")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]store.Store{"a table": table, "memory": &idem.MemoryStore{}}
}

// Two engines of one store and namespace have the same keys: handlers of one kind
// without a name would take each other's work for done.
func TestTwoEnginesWithTheSameKeysOnOneStore(t *testing.T) {
	t.Parallel()
	stores := unnamedStores(t)
	for _, step := range []struct {
		namespace, kind, name string
		ok                    bool
	}{
		{"a", "Direct", "", true},
		{"b", "Direct", "", true},
		{"a", "events.SNSEventRecord", "", true},
		{"a", "Direct", "refund", true},
		{"a", "Direct", "refund", true}, // another version of it, in a test: it has the same name
		{"a", "Direct", "", false},
		{"a", "events.SNSEventRecord", "", false},
	} {
		for name, st := range stores {
			e := idem.New(st, func(o *idem.Options) { o.Namespace = step.namespace })
			if err := e.AddOperation(step.kind, step.name); (err == nil) != step.ok {
				t.Errorf("%s: %+v: %v", name, step, err)
			}
		}
	}
	for name, st := range stores {
		off := idem.New(st, func(o *idem.Options) { o.Namespace, o.Mode = "a", idem.ModeOff })
		if err := off.AddOperation("Direct", ""); err != nil {
			t.Errorf("%s: a disabled engine: %v", name, err)
		}
	}
}
