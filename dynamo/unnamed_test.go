package dynamo_test

import (
	"testing"

	"github.com/samekey/samekey/idem"
)

// Engines of one process share a store. Handlers without a name are told apart by
// their namespace only: a second one there would end the first one's operations.
func TestTwoEnginesWithoutNamesOnOneStore(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
	engine := func(namespace string, resumable bool) *idem.Engine {
		return tab.Engine(func(o *idem.Options) { o.Namespace, o.Resumable = namespace, resumable })
	}
	for _, step := range []struct {
		namespace, name string
		resumable, ok   bool
	}{
		{"a", "", false, true}, // nobody completes its requests
		{"a", "", true, true},
		{"b", "", true, true},
		{"a", "POST /refunds", true, true},
		{"a", "POST /refunds", true, true}, // the same route of another version, in a test: it has the same name
		{"a", "", true, false},
		{"b", "", true, false},
	} {
		if err := engine(step.namespace, step.resumable).AddHandler(step.name); (err == nil) != step.ok {
			t.Errorf("%+v: %v", step, err)
		}
	}
}

// Two engines of one store and namespace have the same keys: handlers of one kind
// without a name would take each other's work for done.
func TestTwoEnginesWithTheSameKeysOnOneStore(t *testing.T) {
	t.Parallel()
	tab := newTable(t)
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
		e := tab.Engine(func(o *idem.Options) { o.Namespace = step.namespace })
		if err := e.AddOperation(step.kind, step.name); (err == nil) != step.ok {
			t.Errorf("%+v: %v", step, err)
		}
	}
	off := tab.Engine(func(o *idem.Options) { o.Namespace, o.Disabled = "a", true })
	if err := off.AddOperation("Direct", ""); err != nil {
		t.Errorf("a disabled engine: %v", err)
	}
}
