package stack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/ids"
)

// Stack is a running template. Make a Stack with [Start].
type Stack struct {
	opts Options
	id   identity
	logs *logs
	log  *slog.Logger
	say  func(format string, args ...any)
	stop context.CancelFunc // ends background work

	db      *database // nil for a template without tables
	queues  *queues   // nil for a template without queues
	failed  failures
	async   *asyncInvoker
	later   *schedulerAPI
	ready   Ready
	servers struct{ api, control, invoke *server }
	gateway swap // handler of the APIs
	invokes swap // handler of the Invoke API
	proxy   *proxy
	// functions are the running functions. A change of the template replaces the whole
	// slice.
	functions atomic.Pointer[[]*function]

	closers   []func() error // in the order in which the parts were started
	closeOnce sync.Once
	closeErr  error
}

// Start reads the template, checks that every function can be run, and starts all parts.
// Start returns when all parts are ready. If Start fails, it ends the parts that it has
// started, and its error says what is wrong with the template, the machine or the
// options.
//
// When ctx ends, functions and event sources end, but Close still has to be called.
func Start(ctx context.Context, opts Options) (*Stack, error) {
	opts, err := opts.withDefaults(ctx)
	if err != nil {
		return nil, err
	}
	l := &logs{w: opts.Logs, metrics: opts.Metrics}
	s := &Stack{opts: opts, id: readIdentity(), logs: l, log: l.logger(), say: l.says()}
	ctx, s.stop = context.WithCancel(ctx)
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Ready returns the addresses of all parts.
func (s *Stack) Ready() Ready { return s.ready }

// Exports returns shell commands that set environment variables, so that samekey's
// commands find the main table. The commands set dummy credentials, unless the stack uses
// the caller's credentials. Exports returns nil if Ready.Records is false.
func (s *Stack) Exports() []string {
	if s.db == nil || !s.ready.Records {
		return nil
	}
	lines := []string{"export IDEM_TABLE=" + s.ready.Table, "export AWS_ENDPOINT_URL_DYNAMODB=" + s.ready.DynamoDB, "export AWS_REGION=" + s.id.region + " AWS_DEFAULT_REGION=" + s.id.region}
	if s.id.key == localKey {
		lines = append(lines, "export AWS_ACCESS_KEY_ID="+localKey+" AWS_SECRET_ACCESS_KEY="+localKey)
	}
	return lines
}

// Close ends all parts that Start started and waits for their end. If the caller provided
// the database, the tables stay in it. Later calls of Close return the first call's result.
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
	s.say("reading %s", s.opts.Template)
	template, err := s.readTemplate(ctx)
	if err != nil {
		return err
	}
	watcher := newWatcher(s, template)
	// listen comes first, so that an occupied port is reported before slow work begins
	if err := s.listen(ctx); err != nil {
		return err
	}
	built, err := s.buildAll(ctx, template)
	if err != nil {
		return err
	}
	s.onClose(s.closeServices)
	if err := errors.Join(s.startServices(ctx, template), s.tellServices(template)); err != nil {
		return err
	}
	s.async = &asyncInvoker{ctx: ctx, pause: 200 * time.Millisecond, fail: s.fail}
	s.onClose(s.async.close)
	s.later = &schedulerAPI{ctx: ctx, arn: "arn:aws:scheduler:" + s.id.region + ":" + ids.AccountID + ":schedule/default", log: s.log}
	s.onClose(s.closeFunctions)
	s.proxy = &proxy{ended: ctx.Done(), allow: s.opts.Environment, dial: new(net.Dialer).DialContext, log: s.log, next: ownPrograms(s.servers.invoke.url, &s.invokes)}
	s.say("starting the functions")
	next, err := s.prepare(ctx, template, built)
	if err != nil {
		return err
	}
	s.enter(ctx, next)
	s.tellOverrides(ctx, next.defs)
	s.servers.invoke.serve(s.proxy)
	if err := s.startProcesses(ctx, s.environ(s.servers.invoke.url)); err != nil {
		return err
	}
	s.onClose(s.closeSources)
	if err := s.startSources(ctx, next.fresh); err != nil {
		return err
	}
	s.servers.control.serve(s.control())
	s.servers.api.serve(s.told(&s.gateway))
	if s.opts.Watch {
		watcher.start(ctx)
	}
	return nil
}

func (s *Stack) listen(ctx context.Context) error {
	for _, v := range []struct {
		port   int
		flag   string
		server **server
	}{{s.opts.APIPort, "--api-port", &s.servers.api}, {s.opts.ControlPort, "--control-port", &s.servers.control}, {0, "", &s.servers.invoke}} {
		server, err := listen(ctx, v.port)
		if errors.Is(err, syscall.EADDRINUSE) && v.port != 0 {
			return fmt.Errorf("%w (choose another by %s, or 0 for any free port)", err, v.flag)
		}
		if err != nil {
			return err
		}
		*v.server = server
		s.onClose(server.close)
	}
	s.ready = Ready{
		Control: s.servers.control.url, Lambda: s.servers.invoke.url, APIs: make(map[string]string), Processes: s.opts.Processes,
	}
	return nil
}

// tellAPI logs how an API behaves differently here than in AWS.
func (s *Stack) tellAPI(ctx context.Context, api sam.API) {
	for _, note := range api.Notes {
		s.log.InfoContext(ctx, note, "api", api.ID)
	}
	if slices.ContainsFunc(api.Routes, func(r sam.Route) bool { return r.Authorizer != nil && r.Authorizer.JWT != nil }) {
		s.log.WarnContext(ctx, "tokens are not verified: whoever reaches the port can be any caller", "api", api.ID)
	}
}

// readTemplate reads the template and checks it, before any part is started.
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
	// placeholders for values that are known only later
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
		if def.Bootstrap != "" && def.Source == (sam.Source{}) {
			if err := checkBinary(def.Bootstrap); err != nil {
				errs = append(errs, fmt.Errorf("function %s: %w", def.ID, err))
			}
		}
	}
	errs = append(errs, checkStateMachines(t, defs))
	if len(defs) == 0 {
		errs = append(errs, errors.New("the template has no function"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", s.opts.Template, err)
	}
	for _, r := range t.Ignored() {
		s.log.InfoContext(ctx, "has no effect in samekey local", "resource", r.ID, "type", r.Type, "line", r.Line)
	}
	return t, nil
}

// checkStateMachines refuses a template with state machines if no function has an
// event. The stack doesn't run state machines, so nothing would call the functions.
func checkStateMachines(t *sam.Template, defs []sam.Function) error {
	if slices.ContainsFunc(defs, func(f sam.Function) bool { return len(f.Events) > 0 }) {
		return nil
	}
	var errs []error
	for _, r := range t.Ignored() {
		if strings.HasSuffix(r.Type, "::StateMachine") {
			errs = append(errs, fmt.Errorf("%s (line %d): samekey local doesn't run %s, and no event calls the functions", r.ID, r.Line, r.Type))
		}
	}
	return errors.Join(errs...)
}
