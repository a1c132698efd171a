package stack

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/samekey/samekey/internal/local/gosource"
	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/ids"
)

// deployment is a template that is ready to run: its functions and their APIs.
type deployment struct {
	defs      []sam.Function
	functions []*function
	fresh     []*function // the new and the changed functions
	apis      []sam.API
	gateway   *gateway
}

// buildAll builds the functions that have a Go package, one after the other, since
// the go command itself uses all processors. It returns the code of all functions.
func (s *Stack) buildAll(ctx context.Context, t *sam.Template) (map[string]code, error) {
	defs, err := t.Functions()
	if err != nil {
		return nil, err
	}
	all := make(map[string]code, len(defs))
	var errs []error
	for _, def := range defs {
		pkg, ok := sourceOf(def)
		if !ok {
			all[def.ID] = code{stamp: programStamp(def)}
			continue
		}
		s.say("building function %s", def.ID)
		// Inputs refuses a package that is not a program; Build alone would accept it.
		inputs, err := pkg.Inputs(ctx)
		if err == nil {
			all[def.ID] = code{inputs, inputs.Stamp()}
			err = pkg.Build(ctx, def.Bootstrap)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("function %s: %w", def.ID, err))
		}
	}
	return all, errors.Join(errs...)
}

// sourceOf returns a function's Go package; false if the function isn't built here.
func sourceOf(def sam.Function) (gosource.Package, bool) {
	return gosource.Package{Path: def.Source.Package, Dir: def.Source.Dir}, def.Source.Package != ""
}

// Stack.prepare makes the template's functions and gateway. The tables, the queues and
// the functions' binaries must exist. A running function that the template leaves
// unchanged is kept.
func (s *Stack) prepare(ctx context.Context, t *sam.Template, built map[string]code) (*deployment, error) {
	var d deployment
	var err error
	if d.defs, err = t.Functions(); err != nil {
		return nil, err
	}
	if d.apis, err = t.APIs(d.defs); err != nil {
		return nil, err
	}
	byID := make(map[string]*function, len(d.defs))
	for _, def := range d.defs {
		def = s.overridden(def)
		f := s.unchanged(def)
		if f == nil {
			if f, err = startFunction(ctx, def, s.functionEnviron(def), s.logs, s.log); err != nil {
				return nil, errors.Join(err, d.discard())
			}
			f.code = built[def.ID]
			d.fresh = append(d.fresh, f)
		}
		d.functions = append(d.functions, f)
		byID[def.ID] = f
	}
	if d.gateway, err = newGateway(d.apis, byID, s.log); err != nil {
		return nil, errors.Join(err, d.discard())
	}
	return &d, nil
}

// Stack.unchanged returns the running function that equals def, or nil.
func (s *Stack) unchanged(def sam.Function) *function {
	for _, f := range s.running() {
		if f.def.ID == def.ID && reflect.DeepEqual(f.def, def) && slices.Equal(f.env, s.functionEnviron(def)) {
			return f
		}
	}
	return nil
}

// deployment.discard ends the functions in d.fresh, which prepare has started.
func (d *deployment) discard() error {
	errs := make([]error, 0, len(d.fresh))
	for _, f := range d.fresh {
		errs = append(errs, f.lambda.Close())
	}
	return errors.Join(errs...)
}

// Stack.enter makes d the running deployment. It ends replaced and removed functions
// with their event sources. It doesn't start the event sources of d.fresh: the caller
// does.
func (s *Stack) enter(ctx context.Context, d *deployment) {
	old := s.running()
	s.functions.Store(&d.functions)
	byID := make(map[string]*function, len(d.functions))
	for _, f := range d.functions {
		byID[f.def.ID] = f
	}
	s.later.serves(s.queues)
	s.invokes.set((&invokeAPI{region: s.id.region, account: ids.AccountID, functions: byID, async: s.async, later: s.later}).handler())
	s.gateway.set(d.gateway)
	for _, f := range old {
		if !slices.Contains(d.functions, f) {
			if err := errors.Join(f.closeSources(), f.lambda.Close()); err != nil {
				f.log.ErrorContext(ctx, "the old process of the function doesn't end", "error", err)
			}
		}
	}
	if len(old) > 0 {
		return // this is not the first deployment, so the ready line is printed already
	}
	s.ready.API = s.servers.api.url + d.gateway.main()
	for _, a := range d.apis {
		s.ready.APIs[a.ID] = s.servers.api.url + d.gateway.at(a.ID)
		s.tellAPI(ctx, a)
	}
}

// Stack.redeploy puts the template t in place of the running template. If redeploy
// fails, the old template continues to run, but tables, queues and programs that
// redeploy has made stay.
func (s *Stack) redeploy(ctx context.Context, t *sam.Template) error {
	built, err := s.buildAll(ctx, t)
	if err != nil {
		return err
	}
	if err := s.startServices(ctx, t); err != nil {
		return err
	}
	next, err := s.prepare(ctx, t, built)
	if err != nil {
		return err
	}
	s.enter(ctx, next)
	if err := s.startSources(ctx, next.fresh); err != nil {
		s.log.ErrorContext(ctx, "an event source doesn't start", "error", err)
	}
	return nil
}
