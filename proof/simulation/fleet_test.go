package simulation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/base/asleep"
)

// The functions, by name.
const (
	apiFunction      = "api"
	workerFunction   = "worker"
	consumerFunction = "consumer"
)

// limits are the functions' time limits.
var limits = map[string]time.Duration{apiFunction: 10 * time.Second, workerFunction: time.Minute, consumerFunction: 20 * time.Second}

// fleet is Lambda: a sandbox works on one event at a time.
type fleet struct {
	w       *world
	version int
	free    map[string][]*sandbox // by function, version and release
	all     []*sandbox
}

// sandbox is a process of a function. When it has crashed, nothing that it still does
// reaches anything.
type sandbox struct {
	w        *world
	name     string
	function string
	version  int
	release  release
	skew     time.Duration
	handler  invoker

	inv   *invocation // under way; the scheduler's
	calls int         // of the invocation; the scheduler's

	waiting []chan struct{} // goroutines that wait until it thaws; the scheduler's

	mu           sync.Mutex
	dead, frozen bool
}

type invoker interface {
	Invoke(context.Context, []byte) ([]byte, error)
}

// payload is an event. The program gets it as JSON, or as it is if it takes that: JSON
// takes half of the simulation's time.
type payload struct {
	json   []byte
	stream *events.DynamoDBEvent
}

func (p *payload) invoke(ctx context.Context, h invoker) ([]byte, error) {
	if taker, ok := h.(*parts); ok && p.stream != nil {
		return taker.stream(ctx, *p.stream)
	}
	if p.json == nil {
		b, err := json.Marshal(p.stream)
		if err != nil {
			return nil, err
		}
		p.json = b
	}
	return h.Invoke(ctx, p.json)
}

// invocation is one event's way through a sandbox.
type invocation struct {
	n    int
	stop context.CancelCauseFunc
	done func([]byte, error) // told once

	noCompanions error // for each of its companions
}

func (inv *invocation) end(out []byte, err error) {
	if inv.done != nil {
		inv.done(out, err)
		inv.done = nil
	}
}

// now is the sandbox's clock.
func (sb *sandbox) now() time.Time { return time.Now().Add(sb.skew) }

// alive waits while the process is frozen, and refuses a process that is dead. A nil
// sandbox is a client. Goroutines of a process that thaws go on one after the other.
func (sb *sandbox) alive(actor string) error {
	for sb != nil {
		sb.mu.Lock()
		dead, frozen := sb.dead, sb.frozen
		sb.mu.Unlock()
		if dead {
			return errCrashed
		}
		if !frozen {
			break
		}
		thaw := make(chan struct{})
		if !sb.w.arrive(&call{actor: actor, op: "stands still", take: func(*call) {
			if sb.dead || !sb.frozen {
				close(thaw)
				return
			}
			sb.waiting = append(sb.waiting, thaw)
		}}) {
			return errOver
		}
		select {
		case <-thaw:
		case <-sb.w.ctx.Done(): // it thaws no more
			return errOver
		}
	}
	return nil
}

func (sb *sandbox) set(dead, frozen bool) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.dead, sb.frozen = dead, frozen
}

// thaws has those go on who wait for the process.
func (sb *sandbox) thaws() {
	for i, thaw := range sb.waiting {
		sb.w.after(time.Duration(i+1)*time.Millisecond, func() { close(thaw) })
	}
	sb.waiting = nil
}

// mostCalls is more than any invocation makes of DynamoDB.
const mostCalls = 300

type actorKey struct{}

// actorOf names who calls: the sandbox and its invocation.
func actorOf(ctx context.Context, sb *sandbox) string {
	if name, ok := ctx.Value(actorKey{}).(string); ok {
		return name
	}
	return sb.name
}

// invoke runs a function with an event; the scheduler's. done is told its result, once.
func (f *fleet) invoke(function string, event payload, done func([]byte, error)) {
	w := f.w
	release := before
	if function == apiFunction {
		release = w.rolls.next()
	}
	key := fmt.Sprint(function, f.version, release)
	var sb *sandbox
	for sb == nil && len(f.free[key]) > 0 {
		n := len(f.free[key]) - 1
		sb, f.free[key] = f.free[key][n], f.free[key][:n]
		if sb.dead || sb.frozen { // by what an earlier invocation has left behind
			sb = nil
		}
	}
	if sb == nil {
		sb = f.start(function, release)
	}
	w.seq++
	inv := &invocation{n: w.seq, done: done}
	sb.inv = inv
	limit := limits[function]
	name := fmt.Sprintf("%s/%d", sb.name, inv.n)
	ctx := w.drawn(context.WithValue(w.ctx, actorKey{}, name), name)
	if !w.renews {
		ctx = asleep.With(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	ctx, inv.stop = context.WithCancelCause(ctx)
	sb.calls = 0
	w.after(limit+w.between(time.Millisecond, time.Second), func() { f.overtime(sb, inv) })
	w.actors.Go(func() {
		defer cancel()
		out, err := event.invoke(ctx, sb.handler)
		w.arrive(&call{actor: name, op: "returns", take: func(*call) { f.returned(sb, inv, key, out, err) }})
	})
}

func (f *fleet) start(function string, release release) *sandbox {
	w := f.w
	sb := &sandbox{w: w, name: fmt.Sprintf("%s%d", function, len(f.all)), function: function, version: f.version, release: release}
	switch {
	case w.clocksRight && function == apiFunction:
	case w.fires(skewed, 0.2):
		sb.skew = w.between(-5*time.Second, 5*time.Second)
	case w.fires(skewedFar, 0.05):
		sb.skew = time.Hour
		if w.likely(0.5) {
			sb.skew = -time.Hour
		}
	}
	sb.handler = w.program(sb)
	f.all = append(f.all, sb)
	if sb.skew != 0 || release != before {
		w.note(sb.name, "starts, version %d, release %d, clock wrong by %s", f.version, release, sb.skew)
	}
	return sb
}

func (f *fleet) returned(sb *sandbox, inv *invocation, key string, out []byte, err error) {
	inv.stop(nil)
	if sb.calls > mostCalls {
		f.w.fail("an invocation of %s makes %d calls", sb.function, sb.calls)
	}
	f.w.most[sb.function] = max(f.w.most[sb.function], sb.calls)
	if sb.inv != inv || sb.dead {
		return
	}
	sb.inv = nil
	if !sb.frozen {
		f.free[key] = append(f.free[key], sb)
	}
	inv.end(out, err)
}

// overtime kills a sandbox whose function has not returned in time. One that is frozen
// is not killed: it is the process that comes back when nobody expects it any more.
func (f *fleet) overtime(sb *sandbox, inv *invocation) {
	if sb.inv != inv || sb.dead {
		return
	}
	if sb.frozen {
		inv.end(nil, errors.New("Task timed out"))
		return
	}
	f.w.counts[timeLimit]++
	f.w.note(sb.name, "is killed at its time limit")
	sb.crash()
}

// crash ends a process: the scheduler's.
func (sb *sandbox) crash() {
	dead := sb.dead
	sb.set(true, false)
	for _, thaw := range sb.waiting {
		close(thaw)
	}
	sb.waiting = nil
	if dead || sb.inv == nil {
		return
	}
	sb.inv.stop(errCrashed)
	sb.inv.end(nil, errCrashed)
}

// crashes has the process die at a call, before or after it is applied, and reports
// whether it does.
func (sb *sandbox) crashes(c *call, apply func(string) (any, error)) bool {
	w := sb.w
	switch {
	case w.fires(crashBefore, 0.004):
		w.note(c.actor, "%s %s: %s", c.op, w.name(c.about), crashBefore)
	case w.fires(crashAfter, 0.004):
		if apply != nil {
			_, _ = apply(", and the process crashes")
		}
	default:
		return false
	}
	sb.crash()
	c.give(nil, errCrashed)
	return true
}

// freeze stops a process at a call for longer than its lease. The call was sent before,
// or is sent when the process comes back.
func (w *world) freeze(c *call, apply func(string) (any, error)) {
	sb := c.sandbox
	rest := w.between(10*time.Second, 2*time.Minute)
	if w.likely(0.3) {
		rest = w.between(2*time.Minute, longest)
	}
	sent := w.likely(0.5)
	w.note(c.actor, "%s %s: the process stands still for %s, sent: %t", c.op, w.name(c.about), rest, sent)
	sb.set(false, true)
	var v any
	var err error
	if sent {
		v, err = apply(", then frozen")
	}
	w.after(rest, func() {
		if sb.dead {
			return
		}
		if !sent {
			v, err = apply(", after " + rest.String() + " frozen")
		}
		sb.set(false, false)
		c.give(v, err)
		sb.thaws()
	})
}

// deploy has new events go to new sandboxes of another version.
func (f *fleet) deploy(version int) {
	f.version = version
	f.w.note("deploy", "version %d", version)
}

func (f *fleet) end() {
	for _, sb := range f.all {
		sb.crash()
	}
}

// Invoke is the SDK's call of a function, as the completer makes it.
func (l link) Invoke(ctx context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	w := l.sb.w
	pk, ver := ticketOf(in.Payload)
	v, err := w.put(ctx, &call{actor: actorOf(ctx, l.sb), op: "Invoke", about: pk, rank: strconv.Itoa(ver), sandbox: l.sb, take: func(c *call) {
		switch {
		case l.sb.crashes(c, nil):
		case w.fires(requestLost, 0.01):
			w.after(time.Second, func() { c.give(nil, errNet) })
		default:
			w.after(w.between(time.Millisecond, 20*time.Millisecond), func() {
				w.fleet.invoke(*in.FunctionName, payload{json: in.Payload}, func(out []byte, err error) {
					if err != nil {
						said := "Runtime.ExitError"
						c.give(&awslambda.InvokeOutput{FunctionError: &said, Payload: []byte(`{"errorMessage":"crashed"}`)}, nil)
						return
					}
					c.give(&awslambda.InvokeOutput{Payload: out}, nil)
				})
			})
		}
	}})
	out, _ := v.(*awslambda.InvokeOutput)
	if err == nil && out == nil {
		err = errNet
	}
	return out, err
}

var _ completer.FunctionAPI = link{}

// ticketOf is the record that a completer's envelope names, and its version.
func ticketOf(payload []byte) (pk string, ver int) {
	var envelope struct {
		Samekey struct {
			Resume struct {
				PK  string
				Ver int
			}
		}
	}
	if err := json.Unmarshal(payload, &envelope); err != nil {
		return "", 0
	}
	return envelope.Samekey.Resume.PK, envelope.Samekey.Resume.Ver
}
