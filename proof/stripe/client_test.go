package stripe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stripe/stripe-go/v85"
)

// call is one call of a client's user.
type call struct {
	N       int    `json:"n"`
	URL     string `json:"url"`
	Call    string `json:"call"` // pay or delete
	V2      bool   `json:"v2"`   // by the paths and encodings of v2
	Account string `json:"account"`
	Key     string `json:"key"` // "" = the client's own
	Amount  int64  `json:"amount"`
	Play    string `json:"play"` // what the server is to do
	Retries int    `json:"retries"`
}

// seen is what the user sees of it.
type seen struct {
	N       int               `json:"n"`
	Error   string            `json:"error"` // the name of its class or type
	Status  int               `json:"status"`
	Code    string            `json:"code"`
	Request string            `json:"request"` // the error's request id
	ID      string            `json:"id"`
	Headers map[string]string `json:"headers"`
}

// client is one of Stripe's official clients.
type client interface {
	do(t *testing.T, c call) <-chan seen
}

var clients = map[string]func(t *testing.T) client{
	"go":     func(*testing.T) client { return goClient{} },
	"python": func(t *testing.T) client { return start(t, ".venv/stripe/bin/python", "driver.py") },
	"node":   func(t *testing.T) client { return start(t, ".venv/stripe-node/node_modules/stripe", "driver.cjs") },
}

// driver is a client in another language, in a process of its own.
type driver struct {
	in io.Writer

	mu      sync.Mutex
	n       int
	pending map[int]chan seen
}

// start starts a driver with what is installed at needs.
func start(t *testing.T, needs, script string) client {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	needs = filepath.Join(root, needs)
	if _, err := os.Stat(needs); err != nil {
		if os.Getenv("REQUIRE_STRIPE_SDKS") == "1" {
			t.Fatalf("%v: run it by make stripe-sdks", err)
		}
		t.Skip("Stripe's client is not installed: make stripe-sdks")
	}
	cmd := exec.CommandContext(t.Context(), needs, filepath.Join("testdata", script))
	if strings.HasSuffix(script, ".cjs") {
		cmd = exec.CommandContext(t.Context(), "node", filepath.Join("testdata", script))
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "NODE_PATH=" + filepath.Dir(needs), "NO_PROXY=*"}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &driver{in: in, pending: make(map[int]chan seen)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.read(t, out)
	}()
	t.Cleanup(func() {
		_ = in.Close() // ends it
		<-done
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("%s: %v", script, err)
		}
	})
	return d
}

func (d *driver) read(t *testing.T, out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var s seen
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Errorf("%s: %v", lines.Text(), err)
			continue
		}
		d.mu.Lock()
		d.pending[s.N] <- s
		delete(d.pending, s.N)
		d.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, ch := range d.pending {
		close(ch) // it has ended, and nothing more will come
	}
}

func (d *driver) do(t *testing.T, c call) <-chan seen {
	t.Helper()
	ch := make(chan seen, 1)
	d.mu.Lock()
	d.n++
	c.N = d.n
	d.pending[c.N] = ch
	d.mu.Unlock()
	line, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	return ch
}

// goClient is stripe-go, as its users have it.
type goClient struct{}

func (goClient) do(t *testing.T, c call) <-chan seen {
	t.Helper()
	ch := make(chan seen, 1)
	go func() { ch <- inGo(t.Context(), c) }()
	return ch
}

func inGo(ctx context.Context, c call) seen {
	retries := int64(c.Retries)
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL: &c.URL, HTTPClient: &http.Client{}, MaxNetworkRetries: &retries,
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull}, EnableTelemetry: new(false),
	})
	sc := stripe.NewClient("sk_test_"+c.Account, stripe.WithBackends(&stripe.Backends{API: backend}))
	var params stripe.Params
	if c.Key != "" {
		params.SetIdempotencyKey(c.Key)
	}
	var last *stripe.APIResponse
	var id string
	var err error
	switch {
	case c.V2:
		raw := stripe.RawParams{Params: params}
		method, path, body := http.MethodPost, "/v2/payment_intents", fmt.Sprintf(`{"amount":%d,"description":%q}`, c.Amount, c.Play)
		if c.Call == "delete" {
			method, path, body = http.MethodDelete, "/v2/core/customers/cus_1", ""
		}
		raw.Context = ctx
		last, err = backend.(*stripe.BackendImplementation).RawRequest(method, path, "sk_test_"+c.Account, body, &raw)
		if err == nil {
			var got struct{ ID string }
			err = json.Unmarshal(last.RawJSON, &got)
			id = got.ID
		}
	case c.Call == "delete":
		var got *stripe.Customer
		if got, err = sc.V1Customers.Delete(ctx, "cus_1", &stripe.CustomerDeleteParams{Params: params}); err == nil {
			id, last = got.ID, got.LastResponse
		}
	default:
		var got *stripe.PaymentIntent
		p := &stripe.PaymentIntentCreateParams{Params: params, Amount: &c.Amount, Currency: stripe.String("usd"), Description: &c.Play}
		if got, err = sc.V1PaymentIntents.Create(ctx, p); err == nil {
			id, last = got.ID, got.LastResponse
		}
	}
	s := seen{ID: id, Headers: map[string]string{}}
	if e, ok := errors.AsType[*stripe.Error](err); ok {
		s.Error, s.Status, s.Code, s.Request, last = reflect.TypeOf(e.Err).String(), e.HTTPStatusCode, string(e.Code), e.RequestID, e.LastResponse
	} else if err != nil {
		s.Error = err.Error()
	}
	if last != nil {
		for name, values := range last.Header {
			s.Headers[strings.ToLower(name)] = values[0]
		}
	}
	return s
}
