package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/samekey/samekey/internal/local/ids"
	"github.com/samekey/samekey/internal/local/sam"
)

// Stack is a running template. Make one with [Start].
type Stack struct {
	opts Options
	id   identity
	logs *logs
	log  *slog.Logger
	stop context.CancelFunc // ends what runs in the background

	db        *database // nil for a template without tables
	queues    *queues   // nil for a template without queues
	functions []*function
	failed    failures
	async     *asyncInvoker
	ready     Ready

	closers   []func() error // in the order in which things were started
	closeOnce sync.Once
	closeErr  error
}

// Start reads the template, checks that every function can be run and starts
// everything. It returns when all of it is ready; what was started is ended
// again if not. The error says what is wrong with the template, the machine or
// the options.
//
// When ctx ends, functions and event sources end too; Close still has to be
// called.
func Start(ctx context.Context, opts Options) (*Stack, error) {
	opts, err := opts.withDefaults(ctx)
	if err != nil {
		return nil, err
	}
	l := &logs{w: opts.Logs}
	s := &Stack{opts: opts, id: readIdentity(), logs: l, log: l.logger()}
	ctx, s.stop = context.WithCancel(ctx)
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Ready tells where everything is.
func (s *Stack) Ready() Ready { return s.ready }

// Close ends everything that Start started and waits for it. Tables stay in a
// database that the caller brought. Calls after the first return what the first
// returned.
func (s *Stack) Close() error {
	s.closeOnce.Do(func() {
		s.stop()
		var errs []error
		for _, end := range slices.Backward(s.closers) {
			errs = append(errs, end())
		}
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}

func (s *Stack) onClose(end func() error) { s.closers = append(s.closers, end) }

func (s *Stack) start(ctx context.Context) error {
	template, err := s.readTemplate(ctx)
	if err != nil {
		return err
	}
	// Ports first: the one that is taken is found before anything slow is done.
	var servers [3]*server
	for i, port := range []int{s.opts.APIPort, s.opts.ControlPort, 0} {
		if servers[i], err = listen(ctx, port); err != nil {
			return err
		}
		s.onClose(servers[i].close)
	}
	api, control, invoke := servers[0], servers[1], servers[2]
	s.ready = Ready{Control: control.url, Lambda: invoke.url, APIs: make(map[string]string), Processes: s.opts.Processes}

	if err := s.startServices(ctx, template); err != nil {
		return err
	}
	base := s.environ(invoke.url)
	defs, err := template.Functions()
	if err != nil {
		return err
	}
	apis, err := template.APIs(defs)
	if err != nil {
		return err
	}
	s.tellOverrides(ctx, defs)
	out := &proxy{ended: ctx.Done(), allow: s.opts.Environment, dial: new(net.Dialer).DialContext, log: s.log}
	byID, err := s.startFunctions(ctx, defs, append(base, out.environ(invoke.url)...))
	if err != nil {
		return err
	}
	fr, err := newGateway(apis, byID, s.log)
	if err != nil {
		return err
	}
	s.ready.API = api.url + fr.main()
	for _, a := range apis {
		s.ready.APIs[a.ID] = api.url + fr.at(a.ID)
		s.tellAPI(ctx, a)
	}
	out.next = (&invokeAPI{region: s.id.region, account: ids.AccountID, functions: byID, async: s.async}).handler()
	invoke.serve(out)
	if err := s.startProcesses(ctx, base); err != nil {
		return err
	}
	if err := s.startSources(ctx); err != nil {
		return err
	}
	control.serve(s.control())
	api.serve(fr)
	return nil
}

// tellAPI logs what of an API isn't as in AWS.
func (s *Stack) tellAPI(ctx context.Context, api sam.API) {
	for _, note := range api.Notes {
		s.log.InfoContext(ctx, note, "api", api.ID)
	}
	if slices.ContainsFunc(api.Routes, func(r sam.Route) bool { return r.Authorizer != nil && r.Authorizer.JWT != nil }) {
		s.log.WarnContext(ctx, "tokens are read, but nobody checks who signed them: whoever reaches the port can be anybody", "api", api.ID)
	}
}

// readTemplate reads the template and finds what is wrong with it, before
// anything is started.
func (s *Stack) readTemplate(ctx context.Context) (*sam.Template, error) {
	t, err := sam.Load(s.opts.Template, func(o *sam.Options) {
		o.StackName, o.Region, o.AccountID = s.opts.StackName, s.id.region, ids.AccountID
		o.Parameters, o.Environment = s.opts.Parameters, s.opts.Environment
	})
	if err != nil {
		return nil, err
	}
	tables, tablesErr := t.Tables()
	queues, queuesErr := t.Queues()
	// What will be known later stands in for itself until then.
	for _, table := range tables {
		if table.StreamView != "" {
			t.Set(table.ID, "StreamArn", "stream:"+table.ID)
		}
	}
	for _, q := range queues {
		t.Set(q.ID, "", "url:"+q.ID)
	}
	defs, err := t.Functions()
	errs := []error{tablesErr, queuesErr, err, checkVisibility(queues, defs)}
	if err == nil {
		_, err = t.APIs(defs)
		errs = append(errs, err)
	}
	for _, def := range defs {
		if def.Bootstrap != "" {
			if err := checkBinary(def.Bootstrap); err != nil {
				errs = append(errs, fmt.Errorf("function %s: %w", def.ID, err))
			}
		}
	}
	if len(defs) == 0 {
		errs = append(errs, errors.New("there is no function in it"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", s.opts.Template, err)
	}
	for _, r := range t.Ignored() {
		s.log.InfoContext(ctx, "has no counterpart here and is left out", "resource", r.ID, "type", r.Type)
	}
	return t, nil
}
