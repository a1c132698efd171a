package idem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/samekey/samekey/idem"
)

// The program can make every status, header and body of the engine's answers:
// here {"error": …}, and 400 for a mismatch, as Stripe does.
func ExampleProblem() {
	plain := func(p idem.Problem) idem.Response {
		switch {
		case errors.Is(p.Err, idem.ErrMismatch):
			p.Status = http.StatusBadRequest
		case errors.Is(p.Err, idem.ErrInFlight):
			p.Title = "idempotency key in use"
		}
		resp := idem.ProblemJSON(p) // for its Retry-After
		resp.Header.Set("Content-Type", "application/json")
		resp.Body, _ = json.Marshal(map[string]string{"error": p.Title})
		return resp
	}
	var handler http.Handler
	ask := func(key, body string) {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Problem, o.Scope = plain, account })
	handler = engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ask("k1", "1") // the same request again, while the first is running
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, "an order")
	}))
	ask("k1", "1")
	ask("k1", "2")
	ask("", "1")
	// Output:
	// 409 {"error":"idempotency key in use"}
	// 201 an order
	// 400 {"error":"Idempotency-Key is already used"}
	// 400 {"error":"Idempotency-Key is invalid"}
}
