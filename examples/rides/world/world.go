// Package world stands in for the external systems of Rocket Rides: a payment
// provider and a mail service, in memory. A mode makes them fail like real services.
// The package has no code of the app.
//
//	POST /v1/charges  {"customer","amount","currency","description"}, Idempotency-Key honoured
//	GET  /v1/charges  [{"id","key","customer","amount","calls"}], with ?key= those that were made with that key
//	POST /v1/mails    {"job_id","ride_id","to","subject","text"}
//	GET  /v1/mails    [{"job_id","ride_id","calls"}]
//	PUT  /v1/mode     see [Mode]
//	GET  /healthz     200
//
// calls counts the requests that reached the service for the same charge or
// mail: more than one means that a caller repeated the request, and that the
// service acted once.
package world

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// maxBody is the largest request body, in bytes.
const maxBody = 64 << 10

// World is the server. The zero value has no failures. A World is safe for concurrent
// use and must not be copied.
type World struct {
	// Memory is how long the payment provider remembers a key, from the first charge. After
	// that the same key makes another charge. 0: for ever. Set Memory before the first
	// request.
	Memory time.Duration

	mu      sync.Mutex
	charges []*charge
	mails   []*mail
	mode    modes
}

// Handler returns the world's HTTP side.
func (w *World) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/charges", w.postCharge)
	mux.HandleFunc("GET /v1/charges", w.getCharges)
	mux.HandleFunc("POST /v1/mails", w.postMail)
	mux.HandleFunc("GET /v1/mails", func(rw http.ResponseWriter, _ *http.Request) {
		list(rw, &w.mu, &w.mails, func(*mail) bool { return true })
	})
	mux.HandleFunc("PUT /v1/mode", w.putMode)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	return http.MaxBytesHandler(mux, maxBody)
}

// list answers with copies of the selected entries, oldest first.
func list[T any](rw http.ResponseWriter, mu *sync.Mutex, entries *[]*T, wanted func(*T) bool) {
	mu.Lock()
	all := []T{}
	for _, e := range *entries {
		if wanted(e) {
			all = append(all, *e)
		}
	}
	mu.Unlock()
	answer(rw, http.StatusOK, all)
}

// decode reads a JSON body into v, or refuses the request.
func decode(rw http.ResponseWriter, r *http.Request, v any) bool {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		refuse(rw, http.StatusBadRequest, "invalid_request_error", "", err.Error())
		return false
	}
	return true
}

func answer(rw http.ResponseWriter, status int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(v) // the client may be gone
}

// refuse answers with an error in the shape of Stripe's.
func refuse(rw http.ResponseWriter, status int, kind, code, message string) {
	type problem struct {
		Type    string `json:"type"`
		Code    string `json:"code,omitempty"`
		Message string `json:"message"`
	}
	answer(rw, status, struct {
		Error problem `json:"error"`
	}{problem{kind, code, message}})
}
