package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/samekey/samekey/idem"
)

// The engine without any transport: a queue consumer, a cron job, a test.
func ExampleEngine_Do() {
	engine := idem.New(&idem.MemoryStore{})
	charge := func(context.Context) (idem.Response, error) {
		fmt.Println("charging")
		return idem.Response{Body: []byte("ch_1")}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	req := idem.Request{Scope: "user-1", Key: "8e03978e-40d5", Body: []byte("2000 usd")}
	for range 2 {
		res, err := engine.Do(ctx, req, charge)
		fmt.Println(string(res.Body), res.Replayed, err)
	}

	req.Body = []byte("9000 usd")
	_, err := engine.Do(ctx, req, charge)
	fmt.Println(errors.Is(err, idem.ErrMismatch))
	// Output:
	// charging
	// ch_1 false <nil>
	// ch_1 true <nil>
	// true
}

// account is the caller, as a middleware before has found out and put into ctx.
func account(context.Context, *idem.Request) (string, error) { return "acct_7", nil }

// One line makes an http.Handler safe to retry.
func ExampleEngine_Middleware() {
	orders := 0
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) {
		orders++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", orders)
	})
	handler := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.Scope = account }).Middleware(mux)

	for range 2 {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", "8e03978e-40d5")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body, w.Header().Get("Idempotent-Replayed") == "true")
	}
	// Output:
	// 201 order 1 false
	// 201 order 1 true
}

// A preset with one change.
func ExampleStripe() {
	engine := idem.New(&idem.MemoryStore{}, idem.Stripe, func(o *idem.Options) { o.Retention = 72 * time.Hour })
	r := httptest.NewRequest(http.MethodPost, "/v2/charges", nil)
	w := httptest.NewRecorder()
	engine.Middleware(http.NotFoundHandler()).ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)
	// Output:
	// 400 {"error":{"code":"idempotency_key_missing","message":"Idempotency-Key is missing. Send a unique key for this operation in the Idempotency-Key header, and the same key with every retry.","type":"invalid_request_error"}}
}

// Count events.
func ExampleHooks() {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) {
		o.Hooks.Claimed = func(_ context.Context, ev idem.Event) { fmt.Println("new on", ev.Route) }
		o.Hooks.Replayed = func(_ context.Context, ev idem.Event) { fmt.Println("replay of a", ev.Status) }
	})
	req := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "8e03978e-40d5", Route: "POST /orders"}
	for range 2 {
		_, _ = engine.Do(context.Background(), req, func(context.Context) (idem.Response, error) {
			return idem.Response{Status: http.StatusCreated}, nil
		})
	}
	// Output:
	// new on POST /orders
	// replay of a 201
}
