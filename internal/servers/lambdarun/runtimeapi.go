package lambdarun

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/servers/ids"
)

const runtimePath = "/2018-06-01/runtime"

// invocation is a unit of work for a sandbox.
type invocation struct {
	id      string
	traceID string
	tenant  string // "" without tenants
	payload []byte
	// since and deadline are set when a sandbox takes the invocation.
	since    time.Time
	deadline time.Time
	// answer is buffered, so that posting an answer never blocks.
	answer chan outcome
}

func newInvocation(payload []byte) *invocation {
	return &invocation{id: ids.UUID(), payload: payload, answer: make(chan outcome, 1)}
}

// outcome is the end of an invocation: an error or a payload.
type outcome struct {
	payload []byte
	err     error
}

// runtimeAPI is the Runtime API of a sandbox. The process asks runtimeAPI for work and
// posts answers to it. runtimeAPI accepts one answer for each invocation that it holds.
// If the process has one worker, runtimeAPI holds only the most recent invocation, and
// refuses a late answer to an earlier invocation.
type runtimeAPI struct {
	arn     string
	workers int
	// polled has a token for each worker that asks for work. A worker that asks for
	// work has finished its previous invocation.
	polled chan struct{}
	work   chan *invocation
	// initFailed is buffered, so that it keeps the report of a failed start until the
	// process is gone.
	initFailed chan *FunctionError

	mu   sync.Mutex
	held map[string]*invocation
}

// newRuntimeAPI returns the Runtime API for a process with this number of workers.
func newRuntimeAPI(arn string, workers int) *runtimeAPI {
	return &runtimeAPI{
		arn:        arn,
		workers:    workers,
		held:       make(map[string]*invocation),
		polled:     make(chan struct{}, workers),
		work:       make(chan *invocation),
		initFailed: make(chan *FunctionError, 1),
	}
}

func (a *runtimeAPI) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runtimePath+"/invocation/next", a.serveNext)
	mux.HandleFunc("POST "+runtimePath+"/invocation/{id}/response", a.serveResponse)
	mux.HandleFunc("POST "+runtimePath+"/invocation/{id}/error", a.serveError)
	mux.HandleFunc("POST "+runtimePath+"/init/error", a.serveInitError)
	return mux
}

// runtimeAPI.hand gives inv to the process, which must have asked for work. If the
// channel gone is closed before the process takes inv, hand returns false, and the
// process has not seen inv.
func (a *runtimeAPI) hand(inv *invocation, gone <-chan struct{}) bool {
	a.hold(inv)
	// A dead process's request for work can linger for a moment. This request must not
	// get inv.
	select {
	case <-gone:
		return false
	default:
	}
	select {
	case a.work <- inv:
		return true
	case <-gone:
		return false
	}
}

func (a *runtimeAPI) hold(inv *invocation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.workers == 1 {
		clear(a.held)
	}
	a.held[inv.id] = inv
}

// runtimeAPI.take removes and returns the held invocation with the given id; nil if
// there is none.
func (a *runtimeAPI) take(id string) *invocation {
	a.mu.Lock()
	defer a.mu.Unlock()
	inv := a.held[id]
	delete(a.held, id)
	return inv
}

func (a *runtimeAPI) serveNext(w http.ResponseWriter, r *http.Request) {
	select {
	case a.polled <- struct{}{}:
	default:
	}
	select {
	case inv := <-a.work:
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Lambda-Runtime-Aws-Request-Id", inv.id)
		h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(inv.deadline.UnixMilli(), 10))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", a.arn)
		h.Set("Lambda-Runtime-Trace-Id", inv.traceID)
		if inv.tenant != "" {
			h.Set("Lambda-Runtime-Aws-Tenant-Id", inv.tenant)
		}
		// An error is ignored: a process that cannot read its work dies or times out.
		_, _ = w.Write(inv.payload)
	case <-r.Context().Done():
	}
}

func (a *runtimeAPI) serveResponse(w http.ResponseWriter, r *http.Request) {
	body, tooLarge, err := readLimited(r.Body, MaxResponseBytes)
	if err != nil {
		// The body ended early: there is no answer, and the process has probably died.
		writeRuntimeStatus(w, http.StatusBadRequest, "InvalidRequest", "response body cut short")
		return
	}
	inv := a.take(r.PathValue("id"))
	if inv == nil {
		writeRuntimeStatus(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return
	}
	if tooLarge {
		inv.answer <- outcome{err: responseTooLargeError(inv.id)}
		writeRuntimeStatus(w, http.StatusRequestEntityTooLarge, "RequestEntityTooLarge",
			"Exceeded maximum allowed payload size ("+strconv.Itoa(MaxResponseBytes)+" bytes).")
		return
	}
	// A handler that returns an io.Reader can fail in the middle of the response. The
	// runtime then reports the error in the trailer.
	if errType := r.Trailer.Get("Lambda-Runtime-Function-Error-Type"); errType != "" {
		inv.answer <- outcome{err: trailerError(inv.id, errType, r.Trailer.Get("Lambda-Runtime-Function-Error-Body"))}
	} else {
		inv.answer <- outcome{payload: body}
	}
	writeRuntimeStatus(w, http.StatusAccepted, "", "")
}

func (a *runtimeAPI) serveError(w http.ResponseWriter, r *http.Request) {
	body, _, err := readLimited(r.Body, MaxResponseBytes)
	if err != nil {
		writeRuntimeStatus(w, http.StatusBadRequest, "InvalidRequest", "error body cut short")
		return
	}
	inv := a.take(r.PathValue("id"))
	if inv == nil {
		writeRuntimeStatus(w, http.StatusBadRequest, "InvalidRequestID", "Invalid request ID")
		return
	}
	inv.answer <- outcome{err: reportedError(inv.id, r.Header.Get("Lambda-Runtime-Function-Error-Type"), body)}
	writeRuntimeStatus(w, http.StatusAccepted, "", "")
}

func (a *runtimeAPI) serveInitError(w http.ResponseWriter, r *http.Request) {
	body, _, err := readLimited(r.Body, MaxResponseBytes)
	if err != nil {
		writeRuntimeStatus(w, http.StatusBadRequest, "InvalidRequest", "error body cut short")
		return
	}
	select {
	case a.initFailed <- reportedError("", r.Header.Get("Lambda-Runtime-Function-Error-Type"), body):
	default:
	}
	writeRuntimeStatus(w, http.StatusAccepted, "", "")
}

// readLimited returns the content of r. If the content exceeds limit bytes, tooLarge is
// true and body is nil. readLimited always reads r to the end, so that the sender gets
// the reply.
func readLimited(r io.Reader, limit int64) (body []byte, tooLarge bool, err error) {
	body, err = io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil || int64(len(body)) <= limit {
		return body, false, err
	}
	_, err = io.Copy(io.Discard, r)
	return nil, true, err
}

func writeRuntimeStatus(w http.ResponseWriter, status int, errType, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if errType == "" {
		_, _ = io.WriteString(w, `{"status":"OK"}`)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"errorType": errType, "errorMessage": message})
}
