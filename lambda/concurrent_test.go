package lambda_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/testkit/callertest"
	"github.com/samekey/samekey/lambda"
)

const (
	// asFunction makes of this test binary a function: what the tests race, the
	// race detector sees in it too.
	asFunction = "LAMBDA_TEST_FUNCTION"
	workers    = 8
)

// concurrentFunction is the function's main. Its store is in its memory, so there
// must be one process.
func concurrentFunction() {
	var mu sync.Mutex
	effects := make(map[string]int)
	met, all := 0, make(chan struct{})
	store := new(idem.MemoryStore)
	engine := idem.New(store, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait })
	lambda.Start(lambda.Wrap(engine, lambda.HTTPAPI, func(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		none := events.APIGatewayV2HTTPResponse{}
		if ev.RawPath == "/meet" { // all workers are in their handlers at the same time
			mu.Lock()
			if met++; met == workers {
				close(all)
			}
			mu.Unlock()
			select {
			case <-all:
			case <-ctx.Done():
				return none, ctx.Err()
			}
		}
		lc, _ := lambdacontext.FromContext(ctx)
		id, err := idem.Atomic(ctx, "order_created", func(_ context.Context, tx *idem.Tx) (string, error) {
			tx.Stage(idem.NewJob("receipt", ev.Body))
			return lc.AwsRequestID, nil
		})
		if err != nil {
			return none, err
		}
		n, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			effects[ev.Body]++
			return effects[ev.Body], nil
		})
		if err != nil {
			return none, err
		}
		return idem.Finish(ctx, func(context.Context, *idem.Tx) (events.APIGatewayV2HTTPResponse, error) {
			return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: fmt.Sprintf("%s, process %d, effect %d, by %s", ev.Body, os.Getpid(), n, id)}, nil
		})
	}))
}

// The runtime's concurrent mode (Lambda Managed Instances): several invocations
// in one process, on one engine and one handler. Run with -race, the process has
// the race detector too, and ends at the first race it finds.
func TestInvocationsShareAProcess(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	logs := new(logBuffer)
	fn, err := lambdarun.Start(t.Context(), lambdarun.Config{
		Name: "concurrent", Binary: self, PerProcess: workers, MaxConcurrency: workers, Timeout: time.Minute, Stdout: logs, Stderr: logs,
		Env: []string{asFunction + "=1", "GORACE=halt_on_error=1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := fn.Close(); err != nil {
			t.Error(err)
		}
		if s := logs.String(); strings.Contains(s, "DATA RACE") || strings.Contains(s, "panic") {
			t.Error(s)
		}
	}()
	call := func(path, key string) (re events.APIGatewayV2HTTPResponse, err error) {
		ev := events.APIGatewayV2HTTPRequest{Version: "2.0", RawPath: path, Body: "order " + key, Headers: map[string]string{"idempotency-key": key}}
		ev.RequestContext.HTTP.Method, ev.RequestContext.HTTP.Path, ev.RouteKey = "POST", path, "POST "+path
		payload, err := json.Marshal(ev)
		if err != nil {
			return re, err
		}
		out, err := fn.Invoke(t.Context(), payload)
		if err == nil {
			err = json.Unmarshal(out, &re)
		}
		return re, err
	}
	clients := func(requests int, path string, key func(client, request int) string) {
		var wg sync.WaitGroup
		answers := make(map[string]string)
		var mu sync.Mutex
		for c := range workers {
			wg.Go(func() {
				for r := range requests {
					k := key(c, r)
					re, err := call(path, k)
					if err != nil || re.StatusCode != 201 || !strings.Contains(re.Body, "order "+k+", ") || !strings.Contains(re.Body, "effect 1,") {
						t.Errorf("%s gets %+v, %v", k, re, err)
					}
					mu.Lock()
					if first, ok := answers[k]; ok && first != re.Body {
						t.Errorf("%s gets %q and %q", k, first, re.Body)
					}
					answers[k] = re.Body
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	clients(1, "/meet", func(c, _ int) string { return fmt.Sprint("m", c) })
	clients(40, "/orders", func(_, r int) string { return fmt.Sprint("k", r/2) }) // each key by all, and twice
	if pids := fn.PIDs(); len(pids) != 1 {
		t.Errorf("processes %v, want one", pids)
	}
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
