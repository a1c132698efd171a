//go:build unix

package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// The stages of a request: what a process works at.
const (
	atAPI      = "API"
	atStatus   = "API, status"
	atResume   = "API, resumed"
	atWorker   = "worker"
	atConsumer = "consumer"
)

// pool is a function whose processes make their calls at addresses of their own, so
// that each call is known by its process.
type pool struct {
	w      *world
	config lambdarun.Config
	env    func(base string) []string
	stage  func(payload []byte) string
	active chan struct{} // invocations that take time of the CPU
	wg     sync.WaitGroup

	mu   sync.Mutex
	free []*slot
	all  []*slot
}

// slot is a function of one process.
type slot struct {
	function *lambdarun.Function
	at       *invocation // guarded by the world's mu
}

// invocation is what a process works at.
type invocation struct {
	stage   string
	began   time.Time
	run     *run           // nil for a batch of several
	names   map[string]int // of the calls that it made
	calls   int
	next    *fault          // at the next call
	failing map[string]fate // by the calls' names
	left    chan struct{}   // closed when its caller doesn't wait any more
	ended   chan struct{}
	out     []byte // its answer, when it has ended
}

// fate is what becomes of the next calls.
type fate struct {
	fault *fault
	times int
}

var errLeft = errors.New("nobody waits for the function any more")

// Invoke has a free process do the work, or a new one.
func (p *pool) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	select {
	case p.active <- struct{}{}:
		defer func() { <-p.active }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	s, err := p.take()
	if err != nil {
		return nil, err
	}
	inv := &invocation{
		stage: p.stage(payload), began: time.Now(), names: map[string]int{}, failing: map[string]fate{},
		left: make(chan struct{}), ended: make(chan struct{}),
	}
	p.w.begin(s, inv, payload)
	var failed error
	p.wg.Go(func() {
		inv.out, failed = s.function.Invoke(context.WithoutCancel(ctx), payload)
		p.w.end(s)
		p.mu.Lock()
		p.free = append(p.free, s)
		p.mu.Unlock()
		close(inv.ended)
	})
	select {
	case <-inv.ended:
		return inv.out, failed
	case <-inv.left:
		return nil, errLeft
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pool) take() (*slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.free); n > 0 {
		s := p.free[n-1]
		p.free = p.free[:n-1]
		return s, nil
	}
	s := &slot{}
	name := fmt.Sprintf("%s-%d", p.config.Name, len(p.all))
	c := p.config
	c.MaxConcurrency = 1
	c.Env = slices.Concat(c.Env, p.env(p.w.address(name, s)))
	var err error
	if s.function, err = lambdarun.Start(p.w.ctx, c); err != nil {
		return nil, err
	}
	p.all = append(p.all, s)
	return s, nil
}

func (p *pool) close(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	all := slices.Clone(p.all)
	p.mu.Unlock()
	for _, s := range all {
		if err := s.function.Close(); err != nil {
			t.Error(err)
		}
	}
	p.wg.Wait()
}

// pids are the ids of the processes that run or are stopped.
func (p *pool) pids() (pids []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		pids = append(pids, s.function.PIDs()...)
	}
	return pids
}

var (
	runID = regexp.MustCompile(`run-[0-9]+-`)
	pkOf  = regexp.MustCompile(`v1#[a-z]*#[A-Za-z0-9_-]{43}`)
)

func stageOfAPI(payload []byte) string {
	switch {
	case bytes.Contains(payload, []byte(`"rawPath":"/operations/`)):
		return atStatus
	case bytes.Contains(payload, []byte(`"rawPath"`)):
		return atAPI
	}
	return atResume
}
