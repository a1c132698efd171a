package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
)

// crashingClient is the environment variable that makes this test binary a
// client that stops at a point, and is killed there. Its value is the point.
const crashingClient = "SAMEKEY_TEST_CRASHING_CLIENT"

// runCrashingClient sends order-42 and never comes back.
func runCrashingClient() {
	stop := func() {
		fmt.Println("stopped")               // to the parent
		_, _ = io.Copy(io.Discard, os.Stdin) // until killed
	}
	j, err := client.OpenJournal(os.Args[1])
	if err != nil {
		fmt.Println(err) // to the parent
		os.Exit(1)
	}
	tr := client.New(roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		if os.Getenv(crashingClient) == "before it is sent" {
			stop()
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		stop() // the answer is here, and nobody will know
		return resp, err
	}), with(j))
	_, _ = sendOrder(tr, os.Args[2])
}

func sendOrder(rt http.RoundTripper, url string) (*http.Response, error) {
	ctx := client.WithOperation(context.Background(), "order-42")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"pizza":1}`))
	if err != nil {
		return nil, err
	}
	return (&http.Client{Transport: rt}).Do(req)
}

// A client that is killed and started again goes on with the same key: one
// order, whenever it died.
func TestKilledClientResumes(t *testing.T) {
	t.Parallel()
	for point, replayed := range map[string]bool{"before it is sent": false, "before the answer is noted": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			orders, keys := 0, map[string]bool{}
			engine := idem.New(&idem.MemoryStore{})
			handler := engine.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				orders++
				keys[r.Header.Get(keyHeader)] = true
				w.WriteHeader(http.StatusCreated)
				fmt.Fprintf(w, "order %d", orders)
			}))
			server := httptest.NewServer(handler)
			defer server.Close()
			path := filepath.Join(t.TempDir(), "operations")

			child := exec.CommandContext(t.Context(), os.Args[0], path, server.URL)
			child.Env = append(os.Environ(), crashingClient+"="+point)
			stdin, err := child.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			defer stdin.Close()
			stdout, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			said, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil || said != "stopped\n" {
				t.Fatalf("the client said %q, %v", said, err)
			}
			if err := child.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = child.Wait()

			j := open(t, path)
			if got := j.Entries(); len(got) != 1 || !got[0].Answered.IsZero() {
				t.Fatalf("entries %+v", got)
			}
			base := &http.Transport{}
			defer base.CloseIdleConnections()
			resp, err := sendOrder(client.New(base, with(j)), server.URL)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(body) != "order 1" || (resp.Header.Get(idem.ReplayedHeader) == "true") != replayed || orders != 1 {
				t.Errorf("%q, %d orders, headers %v", body, orders, resp.Header)
			}
			if got := j.Entries(); len(keys) != 1 || !keys[got[0].Key] || got[0].Status != http.StatusCreated {
				t.Errorf("keys %v, entries %+v", keys, got)
			}
		})
	}
}
