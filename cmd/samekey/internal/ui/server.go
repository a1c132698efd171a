package ui

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
)

//go:embed static
var static embed.FS

// DefaultNewest is the default number of rows that the page holds.
const DefaultNewest = 20_000

// maxAnswer is the maximum size of an answer that a person gives on the page, in bytes.
const maxAnswer = 256 << 10

// Server serves the page. Make a Server with [Listen].
type Server struct {
	src    Source
	view   *view
	hub    *hub
	loader *loader
	guard  *guard

	ln   net.Listener
	http *http.Server

	looked chan struct{} // closed at a session's first request, so that the reading of the table begins
	look   func()        // closes looked
}

// Listen opens a port of 127.0.0.1 for a page about src. If port is 0, Listen takes any
// free port. The page holds only the newest records. The parameter newest is the
// maximum number of records; 0 means [DefaultNewest]. Then call [Server.Serve]. Serve
// closes the port before it returns.
func Listen(ctx context.Context, port, newest int, src Source) (*Server, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	if newest <= 0 {
		newest = DefaultNewest
	}
	s := &Server{src: src, view: newView(newest), hub: &hub{}, guard: newGuard(ln.Addr()), ln: ln, looked: make(chan struct{})}
	s.look = sync.OnceFunc(func() { close(s.looked) })
	s.loader = &loader{src: src, view: s.view, hub: s.hub}
	return s, nil
}

// URL returns the link to the page. The token that starts a session is in the link's
// fragment, which browsers don't send. Whoever has the link can do everything that the
// page can do.
func (s *Server) URL() string { return "http://" + s.ln.Addr().String() + "/#token=" + s.guard.launch }

// Serve answers requests until ctx ends, and then returns nil.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.http = &http.Server{
		Handler: s.handler(ctx), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0), BaseContext: func(net.Listener) context.Context { return ctx },
	}
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		select {
		case <-ctx.Done():
		case <-s.looked:
			s.loader.run(ctx)
		}
	}()
	context.AfterFunc(ctx, func() { _ = s.http.Close() })
	err := s.http.Serve(s.ln)
	cancel()
	<-loaded
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Server.handler returns the HTTP handler for the page's requests. A scan that a
// request has started ends when ctx ends.
func (s *Server) handler(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", files())
	mux.HandleFunc("POST /api/session", s.guard.enter)
	for pattern, serve := range map[string]http.HandlerFunc{
		"GET /api/about":    s.about,
		"GET /api/size":     s.size,
		"GET /api/requests": s.requests,
		"GET /api/events":   s.events,
		"GET /api/record":   s.record,
		"POST /api/data":    s.data,
		"POST /api/find":    s.find,
		"POST /api/ask":     s.ask,
		"POST /api/act":     s.act,
		"POST /api/scan": func(w http.ResponseWriter, _ *http.Request) {
			s.loader.start(ctx)
			reply(w, s.loader.state())
		},
		"POST /api/stop": func(w http.ResponseWriter, _ *http.Request) {
			s.loader.stop()
			reply(w, s.loader.state())
		},
	} {
		mux.HandleFunc(pattern, s.guard.members(func(w http.ResponseWriter, r *http.Request) {
			s.look()
			serve(w, r)
		}))
	}
	mux.HandleFunc("/api/", s.guard.members(func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path)
	}))
	return s.guard.wrap(mux)
}

// files returns a handler for the page's files, which contain no data.
func files() http.Handler {
	dir, _ := fs.Sub(static, "static") // the error is nil, because the path is valid
	serve := http.FileServerFS(dir)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(w, http.StatusMethodNotAllowed, "the page is read-only")
			return
		}
		if _, err := fs.Stat(dir, strings.TrimPrefix(r.URL.Path, "/")); err != nil && r.URL.Path != "/" {
			refuse(w, http.StatusNotFound, "there is no "+r.URL.Path)
			return
		}
		serve.ServeHTTP(w, r)
	})
}

func (s *Server) about(w http.ResponseWriter, _ *http.Request) {
	reply(w, struct {
		About
		Newest int `json:"newest"`
	}{s.src.About(), s.view.limit})
}

func (s *Server) size(w http.ResponseWriter, r *http.Request) {
	size, err := s.src.Size(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, struct {
		Size
		Units float64 `json:"units"`
	}{size, size.Units()})
}

func (s *Server) requests(w http.ResponseWriter, r *http.Request) {
	scan := s.loader.state() // before the rows are read: if the scan is complete, the rows contain all that it has read
	rows, version, dropped := s.view.snapshot()
	l := list(rows, filterOf(r.URL.Query()))
	l.Version, l.Dropped = version, dropped
	reply(w, struct {
		listing
		Scan scanState `json:"scan"`
	}{l, scan})
}

func (s *Server) record(w http.ResponseWriter, r *http.Request) {
	s.story(w, r, r.URL.Query().Get("pk"), false)
}

// Server.data sends a story with its personal data. The request is a POST with the
// record's key in the body, because browsers don't cache the answer to a POST.
func (s *Server) data(w http.ResponseWriter, r *http.Request) {
	var in struct {
		PK string `json:"pk"`
	}
	if decode(w, r, &in) {
		s.story(w, r, in.PK, true)
	}
}

func (s *Server) story(w http.ResponseWriter, r *http.Request, pk string, personal bool) {
	story, err := s.src.Story(r.Context(), s.exact(pk), personal)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, story)
}

func (s *Server) find(w http.ResponseWriter, r *http.Request) {
	var in Search
	if !decode(w, r, &in) {
		return
	}
	in.Any = strings.TrimSpace(in.Any)
	if in.Caller {
		in.Scan = true
	}
	if !in.Caller && (in.Key == "") == (in.Any == "") {
		refuse(w, http.StatusBadRequest, "search for a customer's key, a caller, a partition key, or the short name of a record in the list; to find an operation or a job by its id, use samekey get")
		return
	}
	if rows, _, _ := s.view.snapshot(); in.Any != "" { // a record in the list is found without a call of Find
		for _, row := range rows {
			if row.PK == in.Any || row.Name == in.Any {
				reply(w, &Found{PKs: []string{row.PK}})
				return
			}
		}
	}
	found, err := s.src.Find(r.Context(), in)
	if err != nil {
		fail(w, err)
		return
	}
	if in.Caller { // add the found records to the list, so that the list shows all requests of the caller
		s.loader.changed(r.Context(), found.PKs)
	}
	reply(w, found)
}

func (s *Server) ask(w http.ResponseWriter, r *http.Request) { s.decide(w, r, s.src.Ask) }

func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	s.decide(w, r, func(ctx context.Context, a Action) (string, error) {
		said, err := s.src.Act(ctx, a)
		s.loader.changed(ctx, []string{a.PK})
		return said, err
	})
}

func (s *Server) decide(w http.ResponseWriter, r *http.Request, do func(context.Context, Action) (string, error)) {
	var a Action
	if !decode(w, r, &a) {
		return
	}
	switch {
	case a.PK == "" || a.Seen == "":
		refuse(w, http.StatusBadRequest, "the action doesn't say which version of the record was shown")
		return
	case len(a.Body) > maxAnswer:
		refuse(w, http.StatusRequestEntityTooLarge, "the answer is larger than 256 KB: use samekey settle --body-file")
		return
	}
	a.PK = s.exact(a.PK)
	said, err := do(r.Context(), a)
	if err != nil {
		fail(w, err)
		return
	}
	reply(w, map[string]string{"said": said})
}

// decode reads a request's JSON. It requires the type application/json, which a form of
// another site can't send.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	if r.Header.Get("Content-Type") != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be application/json")
		return false
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "can't read the body: "+err.Error())
		return false
	}
	return true
}

func reply(w http.ResponseWriter, v any) {
	answer(w, http.StatusOK, v)
}

// answer sends v to the page as JSON, without hidden characters.
func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(v)) //nolint:gosec // JSON; if it fails, the page has gone
}

// encode returns v as JSON. It leaves out hidden characters, because a table's texts can
// come from anyone.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil { // impossible: every type that is sent to the page can be encoded
		return []byte(`{}`)
	}
	return plain.PageJSON(raw)
}

// Server.exact returns the whole partition key for a pk from the page. The page gets
// partition keys without hidden characters, so pk lacks the hidden characters.
func (s *Server) exact(pk string) string {
	found := pk
	rows, _, _ := s.view.snapshot()
	for _, row := range rows {
		switch {
		case row.PK == pk:
			return pk
		case plain.Text(row.PK) == pk:
			found = row.PK
		}
	}
	return found
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	switch {
	case errors.Is(err, ErrGone):
		status = http.StatusNotFound
	case errors.Is(err, ErrMoved):
		status = http.StatusConflict
	case errors.Is(err, ErrRefused):
		status = http.StatusUnprocessableEntity
	}
	refuse(w, status, err.Error())
}
