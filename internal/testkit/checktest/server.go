// Package checktest has APIs with idempotency keys, for tests of package check. Each API is
// correct, except for the faults that a test chooses.
package checktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is an API that takes orders by POST on /orders and /refunds. A PUT on these
// paths gets 200 and takes no order. The server follows the default contract, except
// for the rules that its faults break. Don't use this code in a real API: the records
// are lost if the process dies. Set Race.N to the number of requests that [Race] lets
// overlap.
type Server struct {
	Race

	wrong map[string]bool

	mu      sync.Mutex
	orders  int
	records map[string]*record
}

type record struct {
	request string // fingerprint of the first request with the key
	done    bool
	status  int
	header  http.Header
	body    []byte
	expires string
}

// Wrong returns a server with the given faults. The parameter racers is the server's
// Race.N.
func Wrong(racers int, faults ...string) *Server {
	s := &Server{Race: Race{N: racers}, wrong: make(map[string]bool), records: make(map[string]*record)}
	for _, f := range faults {
		if !slices.ContainsFunc(Faults(), func(known Fault) bool { return known.Name == f }) {
			panic("checktest: there is no fault " + f) //nolint:forbidigo // a mistake in the test
		}
		s.wrong[f] = true
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Outside(http.HandlerFunc(s.serve)).ServeHTTP(w, r)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.allowPages(w, r)
	body, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		s.refuse(w, http.StatusBadRequest, "request_invalid")
	case r.Method == http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path != "/orders" && r.URL.Path != "/refunds":
		s.refuse(w, http.StatusNotFound, "route_not_found")
	case r.Method == http.MethodPut && !s.wrong["ignores-method"]:
		w.WriteHeader(http.StatusOK)
	case r.Method != http.MethodPost && r.Method != http.MethodPut:
		s.refuse(w, http.StatusMethodNotAllowed, "method_not_allowed")
	default:
		s.keyed(w, r, body)
	}
}

// allowPages adds the CORS headers for pages of https://shop.example.
func (s *Server) allowPages(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != "https://shop.example" {
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "https://shop.example")
	h.Set("Access-Control-Expose-Headers", "Idempotent-Replayed, Idempotency-Expires, Idempotency-Key, Retry-After")
	if s.wrong["exposes-nothing"] {
		h.Del("Access-Control-Expose-Headers")
	}
	if r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Headers", "content-type, idempotency-key")
		if s.wrong["no-preflight"] {
			h.Set("Access-Control-Allow-Headers", "content-type")
		}
	}
}

// Server.refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, status int, code string, more ...byte) {
	h := w.Header()
	if s.wrong["hides-errors"] {
		h.Del("Access-Control-Allow-Origin")
	}
	if !s.wrong["cacheable"] {
		h.Set("Cache-Control", "no-store")
	}
	if status == http.StatusConflict && code == "idempotency_in_flight" && !s.wrong["no-retry-after"] {
		h.Set("Retry-After", "1")
	}
	if s.wrong["plain-errors"] {
		http.Error(w, code, status)
		return
	}
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	body := fmt.Appendf(nil, `{"type":"https://shop.example/problems#%s","title":%[1]q,"status":%[2]d,"code":%[1]q%[3]s}`, code, status, more)
	_, _ = bytes.NewReader(body).WriteTo(w) // the client may be gone
}

// Server.key returns the key of a request. If the request must be refused, key returns
// the status and the code of the refusal instead.
func (s *Server) key(r *http.Request) (key string, status int, code string) {
	values := r.Header.Values("Idempotency-Key")
	invalid := http.StatusBadRequest
	if s.wrong["invalid422"] {
		invalid = http.StatusUnprocessableEntity
	}
	if len(values) == 0 {
		if s.wrong["keyless422"] {
			return "", http.StatusUnprocessableEntity, "idempotency_key_missing"
		}
		return "", http.StatusBadRequest, "idempotency_key_missing"
	}
	key = values[0]
	bare := strings.TrimSuffix(strings.TrimPrefix(key, `"`), `"`)
	quoted := len(bare) == len(key)-2
	if quoted && !s.wrong["keeps-quotes"] {
		key = bare
	}
	visible := !strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
	switch {
	case quoted && s.wrong["no-quotes"], !quoted && s.wrong["quotes-only"],
		len(values) > 1 && !s.wrong["takes-two"],
		key == "" && !s.wrong["takes-empty"],
		len(key) > 255 && !s.wrong["takes-long"],
		!visible && !s.wrong["takes-any"]:
		return "", invalid, "idempotency_key_invalid"
	}
	return key, 0, ""
}

// Server.keyed answers a request that must have a key.
func (s *Server) keyed(w http.ResponseWriter, r *http.Request, body []byte) {
	key, status, code := s.key(r)
	if code == "idempotency_key_missing" && s.wrong["runs-keyless"] {
		s.send(w, s.handle(r, body, &record{}))
		return
	}
	if status != 0 {
		s.refuse(w, status, code)
		return
	}
	if !s.wrong["no-echo"] {
		w.Header().Set("Idempotency-Key", r.Header.Get("Idempotency-Key"))
	}
	rec, claimed := s.claim(r, key, body)
	switch {
	case claimed:
		s.Inside(r.Context(), key)
		s.finish(s.name(r, key), s.handle(r, body, rec))
		s.send(w, rec)
	case rec.request != s.fingerprint(r, body):
		s.mismatch(w, rec)
	case !rec.done && s.wrong["fails-races"]:
		s.refuse(w, http.StatusInternalServerError, "internal_error")
	case !rec.done:
		s.refuse(w, http.StatusConflict, "idempotency_in_flight")
	case s.wrong["reruns"]:
		s.send(w, s.handle(r, body, &record{expires: rec.expires}))
	default:
		s.replay(w, rec)
	}
}

// Server.name returns the name of a key's record.
func (s *Server) name(r *http.Request, key string) string {
	if !s.wrong["ignores-caller"] {
		key += " " + r.Header.Get("Authorization")
	}
	if s.wrong["keys-by-path"] {
		key += " " + r.URL.Path
	}
	return key
}

func (s *Server) fingerprint(r *http.Request, body []byte) string {
	var parts []string
	for part, fault := range map[string]string{"m " + r.Method: "ignores-method", "p " + r.URL.Path: "ignores-path", "b " + string(body): "ignores-body"} {
		if !s.wrong[fault] {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// Server.claim creates the record of a key, and returns the record and true. If the key
// has a record, claim returns a copy of that record and false.
func (s *Server) claim(r *http.Request, key string, body []byte) (*record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, fingerprint := s.name(r, key), s.fingerprint(r, body)
	old := s.records[name]
	second := s.wrong["races"] && old != nil && !old.done && s.records["second "+name] == nil
	if old != nil && !second && (!s.wrong["overwrites"] || old.request == fingerprint) {
		copied := *old
		return &copied, false
	}
	rec := &record{request: fingerprint, expires: time.Now().Add(24 * time.Hour).UTC().Format(http.TimeFormat)}
	s.records[name] = rec
	if second {
		s.records["second "+name] = rec
	}
	return rec, true
}

// Server.finish marks the record as done. If the answer is a 422, finish frees the key.
func (s *Server) finish(name string, rec *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec.done = true
	if rec.status == http.StatusUnprocessableEntity && !s.wrong["burns"] {
		delete(s.records, name)
	}
}

// Server.handle takes the order in the body, and puts the answer into rec. If the body
// has no order, the answer is a 422.
func (s *Server) handle(r *http.Request, body []byte, rec *record) *record {
	var in struct{ Item string }
	if err := json.Unmarshal(body, &in); err != nil || in.Item == "" {
		rec.status, rec.header = http.StatusUnprocessableEntity, http.Header{"Content-Type": {"application/json"}}
		rec.body = []byte(`{"error":"send an item"}`)
		return rec
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders++
	id := fmt.Sprintf("order_%03d", s.orders)
	rec.body = fmt.Appendf(nil, `{"id":%q,"item":%q}`, id, in.Item)
	rec.status = http.StatusCreated
	rec.header = http.Header{"Content-Type": {"application/json"}, "Location": {r.URL.Path + "/" + id}}
	return rec
}

// Server.send sends the answer that a record holds.
func (s *Server) send(w http.ResponseWriter, rec *record) {
	maps.Copy(w.Header(), rec.header)
	switch {
	case rec.expires == "" || s.wrong["no-lifetime"]:
	case s.wrong["seconds"]:
		w.Header().Set("Idempotency-Expires", "86400")
	default:
		w.Header().Set("Idempotency-Expires", rec.expires)
	}
	w.WriteHeader(rec.status)
	_, _ = bytes.NewReader(rec.body).WriteTo(w) // the client may be gone
}

func (s *Server) replay(w http.ResponseWriter, rec *record) {
	if !s.wrong["unmarked"] {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	if s.wrong["says200"] {
		rec.status = http.StatusOK
	}
	if s.wrong["drops-headers"] {
		rec.header = http.Header{"Content-Type": rec.header["Content-Type"]}
	}
	if s.wrong["respells"] {
		var b bytes.Buffer
		_ = json.Indent(&b, rec.body, "", " ") // it is JSON
		rec.body = b.Bytes()
	}
	s.send(w, rec)
}

func (s *Server) mismatch(w http.ResponseWriter, rec *record) {
	status, more := http.StatusUnprocessableEntity, []byte(nil)
	if s.wrong["mismatch409"] {
		status = http.StatusConflict
	}
	if s.wrong["leaks"] {
		more = slices.Concat([]byte(`,"first":`), rec.body)
	}
	s.refuse(w, status, "idempotency_key_mismatch", more...)
}

// Orders returns the number of orders that were taken.
func (s *Server) Orders() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders
}
