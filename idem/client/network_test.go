package client_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A real network with both versions of the protocol: TLS, and broken streams.
func TestOverTheNetwork(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			var orders, requests atomic.Int64
			inner := idem.New(&idem.MemoryStore{}, callertest.Anybody).Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "order %d of %d bytes", orders.Add(1), len(body))
			}))
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch requests.Add(1) {
				case 1: // before the request is read
					panic(http.ErrAbortHandler)
				case 2: // after the order was carried out
					inner.ServeHTTP(httptest.NewRecorder(), r)
					panic(http.ErrAbortHandler)
				case 3: // in the middle of the answer
					w.Header().Set("Content-Length", "100")
					_, _ = w.Write([]byte("order"))
					panic(http.ErrAbortHandler)
				}
				inner.ServeHTTP(w, r)
			}))
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.EnableHTTP2 = proto == "HTTP/2.0"
			server.StartTLS()
			defer server.Close()

			hc := server.Client()
			hc.Transport = client.New(hc.Transport, fast, func(o *client.Options) { o.MaxRetries = 5 })
			resp, err := hc.Post(server.URL, "text/plain", onlyReader{strings.NewReader(string(filled(1 << 20)))})
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(body) != "order 1 of 1048576 bytes" || err != nil || resp.Header.Get(idem.ReplayedHeader) != "true" || resp.Proto != proto {
				t.Errorf("%q, %v, %s, %v", body, err, resp.Proto, resp.Header)
			}
			if orders.Load() != 1 || requests.Load() != 4 {
				t.Errorf("%d orders, %d requests", orders.Load(), requests.Load())
			}
		})
	}
}

func TestNoConnection(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	// An untrusted certificate: one attempt, no retry.
	if e := failure(t, client.New(base, fast), requestTo(t, server.URL)); e.Attempts != 1 || e.GaveUp != "" || e.Unknown {
		t.Errorf("%+v, want one attempt that did nothing", e)
	}
	// No server is listening: certainly not carried out.
	server.Close()
	if e := failure(t, client.New(base, fast), requestTo(t, server.URL)); e.Attempts != 3 || e.Unknown {
		t.Errorf("%+v, want three attempts that did nothing", e)
	}
}

// Attempts share a connection and leave nothing behind.
func TestConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"answers in memory": 1000, "answers read to their end": 60_000, "answers read on": 100_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				network, wire := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					if n++; n%2 == 1 {
						w.WriteHeader(http.StatusServiceUnavailable)
					}
					_, _ = w.Write(filled(size))
				}), nil)
				tr := client.New(network, func(o *client.Options) { o.MaxAnswer = 50_000 })
				for range 5 {
					if _, body, err := roundTrip(t, tr, requestTo(t, "http://api.test/")); err != nil || len(body) != size {
						t.Errorf("%d bytes, %v", len(body), err)
					}
				}
				if want := map[bool]int{true: 1, false: 6}[size < 64<<10]; n != 10 || wire.dialed != want {
					t.Errorf("%d requests on %d connections, want %d", n, wire.dialed, want)
				}
			})
		})
	}
}

// Expect: 100-continue, and the caller's own trace: each attempt waits for the
// server's answer before it sends the body.
func TestInformationalAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		network, _ := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			if n++; n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable) // without a request for the body
				return
			}
			body, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%d bytes", len(body))
		}), nil)
		network.ExpectContinueTimeout = time.Hour
		codes := []int{}
		req := requestTo(t, "http://api.test/")
		req.Header.Set("Expect", "100-continue")
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(code int, _ textproto.MIMEHeader) error { codes = append(codes, code); return nil },
		}))
		_, body, err := roundTrip(t, client.New(network), req)
		if err != nil || body != "1 bytes" || fmt.Sprint(codes) != "[103 103 100]" || n != 2 {
			t.Errorf("%q, %v, %v after %d requests", body, err, codes, n)
		}
	})
}

func requestTo(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	return req
}
