package eventsource

import (
	"context"
	"sync"
)

// Mapping is a running event source. It is safe for concurrent use.
//
// A Mapping ends when the context of Start ends or Close is called. Call Close even if
// the context has ended.
type Mapping struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	gate   gate
}

// Pause stops new invocations. Disabling a mapping in Lambda does the same, but not at
// once. An invocation that runs or is about to begin goes on, and its result is used. A
// paused stream keeps its place in each shard. A paused queue gives back the messages
// that it had received, but their receive counts stay raised. Pausing a paused source
// does nothing.
func (m *Mapping) Pause() { m.gate.close() }

// Resume continues a paused source where it stopped.
func (m *Mapping) Resume() { m.gate.open() }

// Paused reports whether the source is paused.
func (m *Mapping) Paused() bool { return m.gate.closed() }

// Close ends the source and returns when all goroutines of the source have ended. Close
// doesn't wait for the result of a running invocation. The result is lost, so a source
// that is started anew may deliver the batch again. Close may be called more than once
// and returns nil.
func (m *Mapping) Close() error {
	m.cancel()
	m.wg.Wait()
	return nil
}
