package idem

import (
	"errors"
	"fmt"
	"sync"
)

// handlers are the names of the handlers that an engine's requests run in.
type handlers struct {
	mu   sync.Mutex
	name map[string]bool
}

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
	case e.handlers.name[name] || name == "" && e.unnamedElsewhere():
		return errors.New("idem: two handlers without a name are on a Resumable engine: an abandoned request would end in either; name them, or have a router")
	}
	if e.handlers.name == nil {
		e.handlers.name = make(map[string]bool)
	}
	e.handlers.name[name] = true
	return nil
}

// unnamedElsewhere asks the store, which all engines of a process share, whether
// another one has a handler without a name.
func (e *Engine) unnamedElsewhere() bool {
	s, ok := e.store.(interface{ AddUnnamed(namespace string) int })
	return ok && s.AddUnnamed(e.opt.Namespace) > 1
}
