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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/client"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// crashingClient is the environment variable that turns this test binary into a
// client that is killed. Its value names the crash point; [writing] means any
// point.
const crashingClient = "SAMEKEY_TEST_CRASHING_CLIENT"

const writing = "while it writes"

// runCrashingClient works with the journal named by the first argument, reports
// to the parent, and never returns.
func runCrashingClient(point string) {
	j, err := client.OpenJournal(os.Args[1])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if point == writing {
		keepWriting(j)
	}
	stop := func() {
		fmt.Println("stopped")
		_, _ = io.Copy(io.Discard, os.Stdin) // until killed
	}
	tr := client.New(roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		if point == "before it is sent" {
			stop()
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		stop() // the answer has arrived, and is lost with the process
		return resp, err
	}), with(j))
	_, _ = sendOrder(tr, os.Args[2])
}

// keepWriting begins operations and calls Done for earlier operations. It opens
// the journal repeatedly, so that the file is rewritten often.
func keepWriting(j *client.FileJournal) {
	must := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	for {
		e := client.Entry{Operation: client.NewKey(), Key: client.NewKey(), Created: time.Now(), Expires: time.Now().Add(time.Hour)}
		_, _, err := j.Begin(context.Background(), e)
		must(err)
		fmt.Println("begun", e.Operation, e.Key)
		if old := j.Entries(); len(old) > 3 {
			fmt.Println("done", old[0].Operation)
			must(j.Done(old[0].Operation))
		}
		must(j.Close())
		j, err = client.OpenJournal(os.Args[1])
		must(err)
	}
}

// startClient starts a client that will be killed.
func startClient(t *testing.T, point string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], args...)
	child.Env = append(os.Environ(), crashingClient+"="+point)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stdin.Close() })
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	return child, bufio.NewReader(stdout)
}

func sendOrder(rt http.RoundTripper, url string) (*http.Response, error) {
	ctx := client.WithOperation(context.Background(), "order-42")
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"pizza":1}`))
	if err != nil {
		return nil, err
	}
	return (&http.Client{Transport: rt}).Do(req)
}

// A client that is killed and restarted continues with the same key: one order,
// whenever the client died.
func TestKilledClientResumes(t *testing.T) {
	t.Parallel()
	for point, replayed := range map[string]bool{"before it is sent": false, "before the answer is noted": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			orders, keys := 0, map[string]bool{}
			engine := idem.New(&idem.MemoryStore{}, callertest.Anybody)
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
			path := journalFile(t)

			child, stdout := startClient(t, point, path, server.URL)
			if said, err := stdout.ReadString('\n'); err != nil || said != "stopped\n" {
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

// A journal that was killed while writing or rewriting still has each key that it
// promised to keep.
func TestKilledJournalKeepsItsPromises(t *testing.T) {
	t.Parallel()
	path := journalFile(t)
	promised := map[string]string{}
	begun := 0
	for round := range 4 {
		child, stdout := startClient(t, writing, path)
		finishing := ""
		for lines := 1; ; lines++ {
			said, err := stdout.ReadString('\n')
			if err != nil { // a half-sent line was not promised
				break
			}
			switch words := strings.Fields(said); {
			case len(words) == 3 && words[0] == "begun":
				delete(promised, finishing) // this operation is done by now
				promised[words[1]], finishing = words[2], ""
				begun++
			case len(words) == 2 && words[0] == "done":
				finishing = words[1]
			default:
				t.Fatalf("the client said %q", said)
			}
			if lines == 7+round*5 {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = child.Wait()
		j, err := client.OpenJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		kept := map[string]string{}
		for _, e := range j.Entries() {
			kept[e.Operation] = e.Key
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if kept[finishing] == "" { // Done may or may not have succeeded
			delete(promised, finishing)
		}
		for name, key := range promised {
			if kept[name] != key {
				t.Errorf("round %d: %s has key %q, want %q", round, name, kept[name], key)
			}
		}
		if over := len(kept) - len(promised); over < 0 || over > 1 { // one operation may have begun without a report
			t.Errorf("round %d: kept %d, promised %d", round, len(kept), len(promised))
		}
		promised = kept
	}
	if begun < 12 {
		t.Errorf("only %d operations were begun", begun)
	}
}
