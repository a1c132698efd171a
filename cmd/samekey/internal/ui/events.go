package ui

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	tellEvery = 250 * time.Millisecond
	heartbeat = 15 * time.Second
	mostPKs   = 200
)

// hub tells connected pages that something changed.
type hub struct {
	mu    sync.Mutex
	pages map[*page]struct{}
}

type page struct {
	wake chan struct{}
	pks  map[string]struct{} // keys of records that changed after the page's most recent event
	many bool                // more records changed than an event can name
}

func (h *hub) join() *page {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pages == nil {
		h.pages = make(map[*page]struct{})
	}
	p := &page{wake: make(chan struct{}, 1), pks: make(map[string]struct{})}
	h.pages[p] = struct{}{}
	return p
}

func (h *hub) leave(p *page) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pages, p)
}

// hub.watched tells whether a page is connected.
func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.pages) > 0
}

// hub.tell wakes all connected pages. The strings pks, if any, are the keys of written
// records.
func (h *hub) tell(pks ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range h.pages {
		for _, pk := range pks {
			p.pks[pk] = struct{}{}
		}
		if p.many = p.many || len(p.pks) > mostPKs; p.many {
			clear(p.pks)
		}
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

func (h *hub) take(p *page) (pks []string, many bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pks, many = slices.Sorted(maps.Keys(p.pks)), p.many
	clear(p.pks)
	p.many = false
	return pks, many
}

// event is a message to a page.
type event struct {
	Scan scanState `json:"scan"`
	// PKs are the keys of written records. If there are too many, PKs is empty and Many
	// is true.
	PKs  []string `json:"pks,omitempty"`
	Many bool     `json:"many,omitempty"`
}

// The events handler sends server-sent events until the page disconnects or the server
// ends.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	p := s.hub.join()
	defer s.hub.leave(p)
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	beat := time.Tick(heartbeat)
	for changed := true; ; {
		text := ": still here\n\n"
		if changed {
			pks, many := s.hub.take(p)
			text = "event: change\ndata: " + string(encode(event{Scan: s.loader.state(), PKs: pks, Many: many})) + "\n\n"
		}
		if _, err := fmt.Fprint(w, text); err != nil {
			return
		}
		if err := rc.Flush(); err != nil {
			return
		}
		select { // wait, so that a burst of changes becomes one event
		case <-r.Context().Done():
			return
		case <-time.After(tellEvery):
		}
		select {
		case <-r.Context().Done():
			return
		case <-beat:
			changed = false
		case <-p.wake:
			changed = true
		}
	}
}
