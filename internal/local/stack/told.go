package stack

import (
	"net/http"
	"strings"
	"time"
)

// Stack.told wraps h. For each request, it logs a line that people can read: method,
// path, status, duration, and whether the answer was a replay. It omits queries,
// headers and bodies, which may be secret.
func (s *Stack) told(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		seen := &seenStatus{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(seen, r)
		replayed := ""
		for name := range w.Header() { // the function may write the header's name in capital or small letters
			if strings.EqualFold(name, "Idempotent-Replayed") {
				replayed = ", replayed"
			}
		}
		s.say("%s %s: %d in %d ms%s", r.Method, r.URL.EscapedPath(), seen.status, time.Since(began).Milliseconds(), replayed)
	})
}

type seenStatus struct {
	http.ResponseWriter
	status int
}

func (w *seenStatus) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *seenStatus) Unwrap() http.ResponseWriter { return w.ResponseWriter }
