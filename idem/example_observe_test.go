package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/samekey/samekey/idem"
)

// A route without keys so far: every request runs as before, and the outcome that
// the request would have had is counted.
func ExampleKeyMode_observe() {
	would := make(map[string]int)
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Mode, o.Scope = idem.ModeObserve, account
		o.Hooks.Observed = func(_ context.Context, ev idem.Event) {
			switch {
			case errors.Is(ev.Err, idem.ErrKeyMissing):
				would["be refused: no key"]++
			case errors.Is(ev.Err, idem.ErrKeyInvalid):
				would["be refused: bad key"]++
			case errors.Is(ev.Err, idem.ErrMismatch):
				would["be refused: the key of another request"]++
			case errors.Is(ev.Err, idem.ErrInFlight):
				would["be told to wait"]++
			case errors.Is(ev.Err, idem.ErrReplay):
				would["be replays"]++
			default: // the table, or the setup: see the log
				would["fail"]++
			}
		}
	})
	orders := 0
	handler := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		orders++
		w.WriteHeader(http.StatusCreated)
	}))

	for _, r := range []struct{ key, body string }{
		{"", "{}"},
		{"8e03978e-40d5", `{"pizza":1}`},
		{"8e03978e-40d5", `{"pizza":1}`}, // a duplicate, as happens today
		{"8e03978e-40d5", `{"pizza":2}`},
	} {
		req := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(r.body))
		if r.key != "" {
			req.Header.Set("Idempotency-Key", r.key)
		}
		handler.ServeHTTP(httptest.NewRecorder(), req)
	}
	fmt.Println(orders, "orders;", would)
	// Output:
	// 4 orders; map[be refused: no key:1 be refused: the key of another request:1 be replays:1]
}

// An engine for each kind of route, all on one store: a route moves from engine
// to engine.
func ExampleNew_routes() {
	store := &idem.MemoryStore{}
	common := func(o *idem.Options) { o.Namespace, o.Scope = "shop", account }
	observe := idem.New(store, common, func(o *idem.Options) { o.Mode = idem.ModeObserve })
	optional := idem.New(store, common, func(o *idem.Options) { o.Key = idem.KeyOptional })
	required := idem.New(store, common)

	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	mux := http.NewServeMux()
	mux.Handle("POST /reviews", observe.Middleware(ok))
	mux.Handle("POST /orders", optional.Middleware(ok))
	mux.Handle("POST /payments", required.Middleware(ok))

	for _, path := range []string{"/reviews", "/orders", "/payments"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		fmt.Println(path, "without a key:", w.Code)
	}
	// Output:
	// /reviews without a key: 201
	// /orders without a key: 201
	// /payments without a key: 400
}

// Work that takes longer than clients wait: a repeated request gets the location
// of the status.
func ExampleEngine_StatusHandler() {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.InFlight, o.StatusURL, o.Scope = idem.InFlightAccept, "/operations/", account
	})
	begun, goOn := make(chan struct{}), make(chan struct{})
	mux := http.NewServeMux()
	mux.Handle("POST /reports", engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-goOn
		fmt.Fprint(w, "the report")
	})))
	mux.Handle("GET /operations/{key}", engine.StatusHandler())

	send := func(method, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Idempotency-Key", "8e03978e-40d5")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w
	}
	first := make(chan *httptest.ResponseRecorder)
	go func() { first <- send(http.MethodPost, "/reports") }()
	<-begun

	again := send(http.MethodPost, "/reports")
	fmt.Println(again.Code, again.Header().Get("Location"))
	location := again.Header().Get("Location")
	open := send(http.MethodGet, location)
	fmt.Println(open.Code, open.Body)

	close(goOn)
	<-first
	done := send(http.MethodGet, location)
	fmt.Println(done.Code, done.Body)
	// Output:
	// 202 /operations/8e03978e-40d5
	// 202 {"status":"in_flight"}
	// 200 the report
}

// A page whose form may be submitted twice: the key is in a hidden field and made
// with the page.
func ExampleFormKey() {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.KeyFrom, o.Scope = idem.FormKey("once"), account })
	orders := 0
	handler := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		orders++
		w.Header().Set("Location", fmt.Sprint("/orders/", orders))
		w.WriteHeader(http.StatusSeeOther)
	}))
	for range 2 { // a double click
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("once=8e03978e-40d5&pizza=1"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("Location"))
	}
	// Output:
	// 303 /orders/1
	// 303 /orders/1
}
