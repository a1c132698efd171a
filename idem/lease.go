package idem

import (
	"context"
	"sync"
	"time"
)

// lease keeps the lease of an attempt while its handler works. Most handlers end before
// the first renewal.
type lease struct {
	lost  context.CancelCauseFunc // ends the handler's context; nil if that context is left unchanged
	turn  chan struct{}           // a writer of the record holds the only slot; nil without renewals
	timer *time.Timer             // of the first renewal; nil without renewals

	mu         sync.Mutex
	over       bool
	quit, done chan struct{} // nil before the first renewal
}

// loses ends the handler's context: another attempt has taken over.
func (l *lease) loses() {
	if l.lost != nil {
		l.lost(ErrLeaseLost)
	}
}

// unkeep ends the renewals: none is in progress after unkeep, which may be called again.
func (l *lease) unkeep() {
	if l.timer == nil || l.timer.Stop() {
		return
	}
	l.mu.Lock()
	again := l.over
	l.over = true
	quit, done := l.quit, l.done
	l.mu.Unlock()
	if quit != nil {
		if !again {
			close(quit)
		}
		<-done
	}
}

// begin returns false if the handler has ended.
func (l *lease) begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return false
	}
	l.quit, l.done = make(chan struct{}), make(chan struct{})
	return true
}

// renews calls renew in turn, each time after the pause that the last call asked for,
// until renew wants no more or the handler ends.
func (l *lease) renews(renew func() (due time.Duration, more bool)) {
	if !l.begin() {
		return
	}
	defer close(l.done)
	for due := time.Duration(0); ; {
		if due > 0 {
			t := time.NewTimer(due)
			select {
			case <-t.C:
			case <-l.quit:
				t.Stop()
				return
			}
		}
		select {
		case l.turn <- struct{}{}: // the handler has no commit in progress
		case <-l.quit:
			return
		}
		var more bool
		due, more = renew()
		<-l.turn
		if !more {
			return
		}
	}
}
