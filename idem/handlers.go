package idem

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// handlers are the names of the handlers that an engine's requests run in.
type handlers struct {
	mu        sync.Mutex
	name      map[string]bool
	operation map[operation]bool
}

// operation is whose keys a handler's are: of its kind, no other has the name.
type operation struct{ kind, name string }

// AddHandler tells the engine of a handler under which its requests will run
// ([Request.Handler]). It is for adapters, at cold start. An error says that an
// abandoned request of a [Options.Resumable] engine would end in the wrong handler:
// one of this name is there already, of this engine, or without a name of another
// engine with this Namespace, where the store tells. Other engines take any.
func (e *Engine) AddHandler(name string) error {
	if !e.opt.Resumable {
		return nil
	}
	e.handlers.mu.Lock()
	defer e.handlers.mu.Unlock()
	switch {
	case e.handlers.name[name] && name != "":
		return fmt.Errorf("idem: a Resumable engine has two handlers with the name %q: an abandoned request would end in either", name)
	case e.handlers.name[name] || name == "" && e.unnamedElsewhere(e.opt.Namespace):
		return errors.New("idem: two handlers without a name are on a Resumable engine: an abandoned request would end in either; name them, or have a router")
	}
	if e.handlers.name == nil {
		e.handlers.name = make(map[string]bool)
	}
	e.handlers.name[name] = true
	return nil
}

// AddOperation tells the engine of a handler whose requests have this
// [Request.Operation], and are told apart from those of other handlers of its kind
// by nothing else. It is for adapters, at cold start. An error says that two
// handlers would share their keys, and that each would take the other's work for
// its own: one of this kind and name is there already, of this engine, or without
// a name of another engine with this Namespace, where the store tells. A Disabled
// engine takes any.
func (e *Engine) AddOperation(kind, name string) error {
	if e.opt.Disabled {
		return nil
	}
	e.handlers.mu.Lock()
	defer e.handlers.mu.Unlock()
	op := operation{kind, name}
	switch {
	case e.handlers.operation[op] && name != "":
		return fmt.Errorf("idem: two handlers of %s have the name %q: each would take the other's work for done", kind, name)
	case e.handlers.operation[op] || name == "" && e.unnamedElsewhere(e.opt.Namespace+" "+kind):
		return fmt.Errorf("idem: two handlers of %s are without a name: each would take the other's work for done; name the newer one: lambda.HandlerOptions.Name of Direct, lambda.Batch.WithName of records", kind)
	}
	if e.handlers.operation == nil {
		e.handlers.operation = make(map[operation]bool)
	}
	e.handlers.operation[op] = true
	return nil
}

// AddSource tells the engine of a source that may bring a request again for as long
// as keeps. It is for adapters, at cold start. Where the engine has forgotten a key by
// then, a late delivery is carried out a second time: unless [Options.RetryWindow]
// says that somebody has thought about it, the log warns. Zero says nothing.
func (e *Engine) AddSource(name string, keeps time.Duration) {
	if known := e.opt.Retention + e.opt.Tombstone; known < keeps && e.opt.RetryWindow == 0 && !e.opt.Disabled {
		e.log.Warn("a late delivery would be carried out a second time: the source keeps a record for longer than Options.Retention; "+
			"set a longer one, or say for how long the source keeps it (lambda.Batch.Keeps), or your Options.RetryWindow",
			"source", name, "keeps", keeps, "retention", known)
	}
}

// unnamedElsewhere asks the store, which all engines of a process share, whether
// another one has a handler without a name among these.
func (e *Engine) unnamedElsewhere(among string) bool {
	s, ok := e.store.(interface{ AddUnnamed(among string) int })
	return ok && s.AddUnnamed(among) > 1
}
