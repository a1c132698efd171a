// Command shop is the server of the browser test of docs/start/recipes.md's button: a
// page with that file, an engine on DynamoDB Local behind it, and a network that a test
// can break. It prints one line of JSON, and ends when its standard input does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "shop:", err)
		os.Exit(1)
	}
}

// page has a button, and says what its intents came to.
const page = `<!doctype html><title>shop</title><link rel="icon" href="data:,"><button>pay</button><p id="said"></p>
<script type="module">
import { resume, send } from "/intent.js";
const said = document.querySelector("#said");
const tell = (all) => Promise.all(all).then((a) => { if (a.length) said.textContent = a.map((x) => x.status + " " + x.body).join(", "); }, (e) => { said.textContent = e.message; });
document.querySelector("button").addEventListener("click", () => tell([send("pay:order-7", new URLSearchParams(location.search).get("to"), { order: 7 })]));
tell(resume());
document.body.dataset.ready = "yes";
</script>`

// shop counts what its customers do.
type shop struct {
	mu       sync.Mutex
	Paid     int      // effects
	Requests int      // that came
	Keys     []string // different ones, in their order
	Lose     int      // so many of the next answers are lost
	Slow     int      // milliseconds that a payment takes
	Unstored bool     // the next answer says so
	Refuse   int      // so many requests get 429 before the engine
	Dated    bool     // their Retry-After is a date, by a clock that is an hour fast, and their keys last three hours
	Login    int      // and so many get 401, after the lost answers
}

func (s *shop) pay(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	s.Paid++
	n, slow := s.Paid, time.Duration(s.Slow)*time.Millisecond
	s.mu.Unlock()
	time.Sleep(slow) //nolint:forbidigo // the payment takes its time
	w.WriteHeader(http.StatusCreated)
	fmt.Fprint(w, "payment ", n)
}

// network loses answers between the engine and the browser.
func (s *shop) network(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.Requests++
		if key := r.Header.Get("Idempotency-Key"); len(s.Keys) == 0 || s.Keys[len(s.Keys)-1] != key {
			s.Keys = append(s.Keys, key)
		}
		lose, unstored, refuse, dated, login := s.Lose > 0, s.Unstored, s.Refuse > 0, s.Dated, s.Lose == 0 && s.Login > 0
		if login {
			s.Login--
		}
		s.Lose, s.Refuse, s.Unstored = max(s.Lose-1, 0), max(s.Refuse-1, 0), false
		s.mu.Unlock()
		switch {
		case refuse:
			w.Header().Set("Retry-After", "2")
			if now := time.Now().UTC().Add(time.Hour); dated {
				w.Header().Set("Date", now.Format(http.TimeFormat))
				w.Header().Set("Retry-After", now.Add(2*time.Second).Format(http.TimeFormat))
				w.Header().Set("Idempotency-Expires", now.Add(3*time.Hour).Format(http.TimeFormat))
			}
			w.WriteHeader(http.StatusTooManyRequests)
		case login:
			w.WriteHeader(http.StatusUnauthorized)
		case lose:
			next.ServeHTTP(&deaf{header: http.Header{}}, r)
			panic(http.ErrAbortHandler) //nolint:forbidigo // the answer is lost
		case unstored:
			w.Header().Set("Idempotency-Status", "unstored")
			w.WriteHeader(http.StatusInternalServerError)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// deaf takes an answer that nobody hears.
type deaf struct{ header http.Header }

func (d *deaf) Header() http.Header         { return d.header }
func (d *deaf) Write(b []byte) (int, error) { return len(b), nil }
func (d *deaf) WriteHeader(int)             {}

// set changes the network, and tells what came so far.
func (s *shop) set(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.NewDecoder(r.Body).Decode(s); err != nil && !errors.Is(err, io.EOF) {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(s)
}

func run(ctx context.Context) (err error) {
	db, err := dynamotest.Find(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	client := db.Client()
	if _, err := client.CreateTable(ctx, dynamo.CreateTableInput("shop")); err != nil {
		return err
	}
	store, err := dynamo.New(client, "shop")
	if err != nil {
		return err
	}
	e := idem.New(store, idem.OneScope)
	off := idem.New(store, idem.OneScope, func(o *idem.Options) { o.Mode = idem.ModeOff })

	s := &shop{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page)
	})
	mux.HandleFunc("GET /intent.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(os.Getenv("SAMEKEY_ROOT"), "examples/recipes/intent.js")) //nolint:gosec // a file of the repository
	})
	mux.Handle("POST /pay", s.network(e.Middleware(http.HandlerFunc(s.pay))))
	mux.Handle("POST /unkeyed", s.network(off.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.pay(&deaf{header: http.Header{}}, r)
		w.WriteHeader(http.StatusBadGateway)
	}))))
	mux.HandleFunc("POST /set", s.set)
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(ln) }()
	fmt.Printf("{\"url\":\"http://%s/\"}\n", ln.Addr()) //nolint:forbidigo // for the test that started it
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Close()
}
