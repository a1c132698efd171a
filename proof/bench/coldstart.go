package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// Start is how long a new process of a function takes, from its start on, in ns.
type Start struct {
	Program string `json:"program"`
	Samples int    `json:"samples"`
	Next    Spread `json:"to_first_next_ns"`   // until it asks for its first event
	Answer  Spread `json:"to_first_answer_ns"` // until it has answered that event
}

// Binary is a bootstrap for arm64.
type Binary struct {
	Program string `json:"program"`
	Bytes   int64  `json:"bytes"`
}

// programs are the two that are started in turns: the hello example, and its handler
// bare, with the same client and as many calls.
var programs = []struct{ name, module, pkg string }{
	{"hello, wrapped", ".", "./examples/hello"},
	{"the same handler, bare, with the same SDK client and number of calls", "proof", "./bench/bare"},
}

// measureStart builds both programs as they are deployed, for this machine, in root,
// and starts each n times.
func measureStart(ctx context.Context, root string, n int) ([]Start, error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	table := httpServer{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, "{}")
	})}
	if err := table.start(ctx); err != nil {
		return nil, err
	}
	defer table.stop()
	var ops []op
	next, answer := make([][]float64, len(programs)), make([][]float64, len(programs))
	for k, p := range programs {
		bin := filepath.Join(dir, strconv.Itoa(k))
		if err := lambdarun.BuildBootstrapIn(ctx, filepath.Join(root, p.module), p.pkg, bin); err != nil {
			return nil, err
		}
		ops = append(ops, func(i int) error {
			asked, answered, err := startOnce(ctx, bin, table.addr)
			if i > 0 { // the first start reads the file from the disk
				next[k], answer[k] = append(next[k], float64(asked)), append(answer[k], float64(answered))
			}
			return err
		})
	}
	if _, err := interleaved(n+1, 1, nil, ops...); err != nil {
		return nil, err
	}
	var all []Start
	for k, p := range programs {
		all = append(all, Start{Program: p.name, Samples: n, Next: spread(next[k]), Answer: spread(answer[k])})
	}
	return all, nil
}

// httpServer is a server on a free port of 127.0.0.1.
type httpServer struct {
	http.Handler
	addr   string
	server *http.Server
}

func (s *httpServer) start(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.addr, s.server = l.Addr().String(), &http.Server{Handler: s.Handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.server.Serve(l) }()
	return nil
}

func (s *httpServer) stop() { _ = s.server.Close() }

const event = `{"version":"2.0","routeKey":"POST /greetings","rawPath":"/greetings","rawQueryString":"",` +
	`"headers":{"content-type":"application/json","idempotency-key":"8e03978e-40d5-43e8-bc93-6894a57f9324","host":"api.example.com"},` +
	`"requestContext":{"accountId":"123456789012","apiId":"api","domainName":"api.example.com","http":{"method":"POST","path":"/greetings",` +
	`"protocol":"HTTP/1.1","sourceIp":"192.0.2.1","userAgent":"bench"},"requestId":"r","routeKey":"POST /greetings","stage":"$default",` +
	`"authorizer":{"jwt":{"claims":{"iss":"https://issuer.example.com","sub":"jane"},"scopes":null}},"timeEpoch":1767323045678},"body":"{\"name\":\"Jane\"}","isBase64Encoded":false}`

// startOnce starts a bootstrap and plays the runtime for its first event.
func startOnce(ctx context.Context, bin, table string) (asked, answered time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	var mu sync.Mutex // for the times, which requests of several connections share
	var begun time.Time
	nexts := 0
	next := func() int {
		mu.Lock()
		defer mu.Unlock()
		if nexts++; nexts == 1 {
			asked = time.Since(begun)
		}
		return nexts
	}
	done := make(chan error, 4) // more than come
	runtime := httpServer{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/invocation/next"):
			if next() > 1 {
				<-r.Context().Done() // no more events
				return
			}
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", "1")
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(5*time.Minute).UnixMilli(), 10))
			_, _ = io.WriteString(w, event)
		case strings.HasSuffix(r.URL.Path, "/response"):
			mu.Lock()
			answered = time.Since(begun)
			mu.Unlock()
			body, err := io.ReadAll(r.Body)
			if err == nil && !strings.Contains(string(body), `"statusCode":201`) {
				err = fmt.Errorf("the first answer is %s", body)
			}
			w.WriteHeader(http.StatusAccepted)
			done <- err
		default:
			body, _ := io.ReadAll(r.Body)
			done <- fmt.Errorf("the function says %s: %s", r.URL.Path, body)
		}
	})}
	if err := runtime.start(ctx); err != nil {
		return 0, 0, err
	}
	defer runtime.stop()
	cmd := exec.CommandContext(ctx, bin)
	cmd.Env = []string{
		"AWS_LAMBDA_RUNTIME_API=" + runtime.addr, "_HANDLER=bootstrap", "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench",
		"AWS_LAMBDA_FUNCTION_NAME=bench", "AWS_ENDPOINT_URL_DYNAMODB=http://" + table, "IDEM_TABLE=bench",
	}
	mu.Lock()
	begun = time.Now()
	mu.Unlock()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	exited, end := make(chan struct{}), error(nil)
	go func() {
		end = cmd.Wait()
		close(exited)
	}()
	select {
	case err = <-done:
	case <-exited:
		return 0, 0, fmt.Errorf("%s ended before its answer: %w", bin, errors.Join(end, ctx.Err()))
	}
	_ = cmd.Process.Kill()
	<-exited
	mu.Lock()
	defer mu.Unlock()
	return asked, answered, err
}

// measureSizes lists the bootstraps in dist, after the bare handler.
func measureSizes(dist, bare string) ([]Binary, error) {
	files, err := filepath.Glob(filepath.Join(dist, "*", "bootstrap"))
	if err != nil {
		return nil, err
	}
	var all []Binary
	for _, f := range append([]string{bare}, files...) {
		info, err := os.Stat(f)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(filepath.Dir(f))
		if f == bare {
			name = "bare handler, the same SDK client"
		}
		all = append(all, Binary{name, info.Size()})
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("no bootstrap in %s: run make build", dist)
	}
	slices.SortStableFunc(all[1:], func(a, b Binary) int { return strings.Compare(a.Program, b.Program) })
	return all, nil
}

// megabytes are in units of 10^6 bytes.
func megabytes(n int64) float64 { return math.Round(float64(n)/1e4) / 100 }
