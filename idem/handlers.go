package idem

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/idem/store"
)

// handlers holds the registered names of an engine's handlers.
type handlers struct {
	mu        sync.Mutex
	name      map[string]bool
	operation map[operation]bool
}

// operation identifies a handler by its kind, and by its name, which is unique within the
// kind.
type operation struct{ kind, name string }

// AddHandler registers the name of a handler that serves requests of this engine
// ([Request.Handler]). Adapters call AddHandler at cold start. AddHandler returns an
// error if the name isn't UTF-8. If [Options.Resumable] is set, AddHandler also refuses
// a name that is empty or belongs to another handler of this engine, because a
// completer could run an abandoned request in the wrong handler.
func (e *Engine) AddHandler(name string) error {
	if !utf8.ValidString(name) { // otherwise the record would store a different name, and nobody could read the record's contents
		return fmt.Errorf("idem: the handler's name %q is not UTF-8", name)
	}
	if !e.core.opt.Resumable {
		return nil
	}
	e.handlers.mu.Lock()
	defer e.handlers.mu.Unlock()
	switch {
	case name == "":
		return errors.New("idem: a handler of a Resumable engine has no name: an abandoned request would end in whatever handler comes after; " +
			"set lambda.HandlerOptions.Name, or have a router")
	case e.handlers.name[name]:
		return fmt.Errorf("idem: a Resumable engine has two handlers with the name %q: an abandoned request would end in either", name)
	}
	if e.handlers.name == nil {
		e.handlers.name = make(map[string]bool)
	}
	e.handlers.name[name] = true
	return nil
}

// AddOperation registers a handler by kind (such as the type of the handled records)
// and by name. Adapters call AddOperation at cold start, for kinds whose handlers may
// get equal keys. If two handlers get equal keys, only their names
// ([Request.Operation]) separate their operations. Under the same kind and name, each
// handler would take the other's work for done.
//
// So AddOperation returns an error if this engine already has a handler of this kind
// and name. For an empty name, AddOperation also returns an error if another engine
// with this store and Namespace has an unnamed handler of this kind, provided that the
// store counts handlers. In [ModeOff] AddOperation accepts any name.
func (e *Engine) AddOperation(kind, name string) error {
	if e.core.opt.Mode == ModeOff {
		return nil
	}
	e.handlers.mu.Lock()
	defer e.handlers.mu.Unlock()
	op := operation{kind, name}
	switch {
	case e.handlers.operation[op] && name != "":
		return fmt.Errorf("idem: two handlers of %s have the name %q: each would take the other's work for done", kind, name)
	case e.handlers.operation[op] || name == "" && unnamedElsewhere(e.core.store, e.core.opt.Namespace+" "+kind):
		return fmt.Errorf("idem: two handlers of %s are without a name: each would take the other's work for done; name the newer one: lambda.HandlerOptions.Name of Direct, lambda.Batch.WithName of records", kind)
	}
	if e.handlers.operation == nil {
		e.handlers.operation = make(map[operation]bool)
	}
	e.handlers.operation[op] = true
	return nil
}

// AddSource registers a source of requests. The parameter keeps is the time during
// which the source may repeat a request; zero means an unknown time. Adapters call
// AddSource at cold start. AddSource logs a warning if keeps is longer than
// [Options.Retention], because a late delivery would run a second time. In [ModeOff]
// AddSource logs nothing.
func (e *Engine) AddSource(name string, keeps time.Duration) {
	if known := e.core.opt.Retention; known < keeps && e.core.opt.Mode != ModeOff {
		e.core.log.Warn("a late delivery would be carried out a second time: the source keeps a record for longer than Options.Retention; "+
			"set a longer one, or say for how long the source keeps it (lambda.Batch.Keeps)",
			"source", name, "keeps", keeps, "retention", known)
	}
}

// unnamedElsewhere counts an unnamed handler in the group that the parameter among
// names, and reports whether an unnamed handler of another engine was counted there
// before. The store keeps the count, since the engines of a process share the store.
func unnamedElsewhere(in store.Store, among string) bool {
	s, ok := in.(interface{ AddUnnamed(among string) int })
	return ok && s.AddUnnamed(among) > 1
}
