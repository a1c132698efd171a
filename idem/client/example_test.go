package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
)

// pizzeria is a server that loses the answer to every first request.
func pizzeria() *httptest.Server {
	var orders, requests atomic.Int64
	orderOnce := idem.New(&idem.MemoryStore{}, idem.OneScope).Middleware(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", orders.Add(1))
	}))
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%2 == 1 {
			orderOnce.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		orderOnce.ServeHTTP(w, r)
	}))
}

// fast shortens the waits in examples.
func fast(o *client.Options) { o.InitialDelay, o.MaxDelay = time.Millisecond, time.Millisecond }

// The server carries out each order, but its first answer is lost.
func Example() {
	server := pizzeria()
	defer server.Close()

	hc := &http.Client{Transport: client.New(nil, fast)}
	for range 2 {
		resp, err := hc.Post(server.URL, "application/json", strings.NewReader(`{"pizza":1}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Println(resp.StatusCode, string(body), resp.Header.Get("Idempotent-Replayed"))
	}
	// Output:
	// 201 order 1 true
	// 201 order 2 true
}

// A named operation keeps its key over a crash.
func ExampleWithOperation() {
	server := pizzeria()
	defer server.Close()
	folder, err := os.MkdirTemp("", "journal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()

	order := func(name string, options ...func(*client.Options)) {
		journal, err := client.OpenJournal(filepath.Join(folder, "operations"))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = journal.Close() }()
		options = append(options, fast, func(o *client.Options) { o.Journal = journal })
		hc := &http.Client{Transport: client.New(nil, options...)}

		ctx := client.WithOperation(context.Background(), name)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader(`{"pizza":1}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		resp, err := hc.Do(req)
		if err != nil {
			e, ok := errors.AsType[*client.Error](err)
			fmt.Println("no answer, may have happened:", ok && e.Unknown)
			return // as if the process had died here
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		fmt.Println(string(body)) // store the answer, then:
		if err := journal.Done(name); err != nil {
			fmt.Println(err)
		}
	}

	order("order-42", func(o *client.Options) { o.MaxRetries = -1 })
	order("order-42") // after the restart: the same name, the same request
	// Output:
	// no answer, may have happened: true
	// order 1
}

// With the key of a failed request, a later request is the same operation.
func ExampleError() {
	server := pizzeria()
	defer server.Close()

	hc := &http.Client{Transport: client.New(nil, func(o *client.Options) { o.MaxRetries = -1 })}
	send := func(key string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL, strings.NewReader(`{"pizza":1}`))
		if err != nil {
			return nil, err
		}
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		return hc.Do(req)
	}
	resp, err := send("")
	if e, ok := errors.AsType[*client.Error](err); ok && e.Unknown {
		resp, err = send(e.Key)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	fmt.Println(string(body), resp.Header.Get("Idempotent-Replayed"))
	// Output:
	// order 1 true
}

// Count events, and show why a retry was not made.
func ExampleHooks() {
	server := pizzeria()
	server.Close() // no server is listening

	hc := &http.Client{Transport: client.New(nil, fast, func(o *client.Options) {
		o.Hooks.Retry = func(_ context.Context, ev client.Event) {
			fmt.Println("retry after attempt", ev.Attempt, "for", ev.Reason)
		}
		o.Hooks.GaveUp = func(_ context.Context, ev client.Event) {
			fmt.Println("gave up after attempt", ev.Attempt, "for", ev.Reason)
		}
	})}
	resp, err := hc.Post(server.URL, "application/json", strings.NewReader(`{"pizza":1}`))
	if err == nil {
		_ = resp.Body.Close()
	}
	// Output:
	// retry after attempt 1 for network
	// retry after attempt 2 for network
	// gave up after attempt 3 for retries
}
