package ui

import (
	"context"
	"errors"
	"sync"
	"time"
)

// scanState is the state of reading the table.
type scanState struct {
	Running  bool   `json:"running"`
	Complete bool   `json:"complete"` // the last scan saw the whole table
	Live     bool   `json:"live"`     // changes are followed, or a local table is read again and again
	Error    string `json:"error,omitempty"`
	Ended    int64  `json:"ended,omitempty"` // epoch ms
	Query    bool   `json:"query"`           // the last query for waiting operations succeeded
	Progress
}

// loader fills the view from the source.
type loader struct {
	src  Source
	view *view
	hub  *hub

	mu     sync.Mutex
	now    scanState
	cancel context.CancelFunc // ends the running scan
	wg     sync.WaitGroup
}

func (l *loader) state() scanState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *loader) set(change func(*scanState)) {
	l.mu.Lock()
	change(&l.now)
	l.mu.Unlock()
	l.hub.tell()
}

// loader.run loads rows and follows changes until ctx ends. It reads a local table as a
// whole. Of any other table, it reads only the waiting operations. If changes can't be
// followed, run reads again and again.
func (l *loader) run(ctx context.Context) {
	defer l.wg.Wait()
	started, ended := make(chan struct{}), make(chan struct{})
	l.wg.Go(func() {
		defer close(ended)
		err := l.src.Follow(ctx, sync.OnceFunc(func() { close(started) }), func(pks []string) { l.changed(ctx, pks) })
		if err != nil && !errors.Is(err, ErrNoStream) && ctx.Err() == nil {
			l.set(func(s *scanState) { s.Error = err.Error() })
		}
	})
	// follow changes before reading the table, so that no change is missed
	followed := false
	select {
	case <-started:
		followed = true
	case <-ended:
	}
	local := l.src.About().Local
	l.set(func(s *scanState) { s.Live = followed || local })
	l.waiting(ctx)
	if local {
		l.scan(ctx)
	}
	<-ended
	l.repeat(ctx, local)
}

// loader.repeat reads again and again while a page is connected. It scans a local
// table as a whole. After each scan, it pauses for ten times the scan's duration, but
// at least for two seconds. Of any other table, it reads only the waiting operations,
// every 15 seconds.
func (l *loader) repeat(ctx context.Context, local bool) {
	pause := 15 * time.Second
	if local {
		pause = time.Second
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if !l.hub.watched() {
			continue
		}
		if !local {
			l.waiting(ctx)
			continue
		}
		began := time.Now()
		l.scan(ctx)
		pause = max(2*time.Second, 10*time.Since(began))
	}
}

// loader.waiting uses a query to load the waiting operations.
func (l *loader) waiting(ctx context.Context) {
	rows, err := l.src.Waiting(ctx, l.view.limit)
	if errors.Is(err, ErrNoQuery) {
		return
	}
	l.view.put(rows...)
	if err == nil && len(rows) < l.view.limit {
		if settled := l.view.waitingBut(rows); len(settled) > 0 { // these operations no longer wait: other programs have settled them
			l.changed(ctx, settled)
		}
	}
	l.set(func(s *scanState) {
		s.Query, s.Error = err == nil, ""
		if err != nil && ctx.Err() == nil {
			s.Error = err.Error()
		}
	})
}

// loader.changed reads the rows of written records again.
func (l *loader) changed(ctx context.Context, pks []string) {
	for _, pk := range pks {
		row, there, err := l.src.Row(ctx, pk)
		if err != nil {
			continue // the old row stays until the record changes again, or until the next scan
		}
		l.view.read(pk, row, there)
	}
	l.hub.tell(pks...)
}

// loader.start begins a scan if no scan is running. The scan ends early if ctx ends or
// stop is called.
func (l *loader) start(ctx context.Context) {
	l.wg.Go(func() { l.scan(ctx) })
}

func (l *loader) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
}

func (l *loader) scan(all context.Context) {
	ctx, cancel := context.WithCancel(all)
	defer cancel()
	l.mu.Lock()
	if l.now.Running {
		l.mu.Unlock()
		return
	}
	l.now.Running, l.now.Error, l.now.Progress, l.cancel = true, "", Progress{}, cancel
	l.mu.Unlock()
	l.view.begin()
	err := l.src.Browse(ctx, func(rows []Row, p Progress) {
		l.view.meet(rows...)
		l.set(func(s *scanState) { s.Progress = p })
	})
	if alone := l.view.end(err == nil); !l.state().Live { // no changes are followed, so the rows that were read outside of the scan may be outdated
		l.changed(all, alone)
	}
	l.set(func(s *scanState) {
		s.Running, s.Ended = false, time.Now().UnixMilli()
		if s.Complete = err == nil; err != nil && !errors.Is(err, context.Canceled) {
			s.Error = err.Error()
		}
	})
}
