package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/examples/hello/greeting"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/servers/apigateway"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/lambda"
)

const (
	table   = "samekey-demo"
	timeout = 3 * time.Second // of the function; short, so that a lease ends soon
)

// stage is the environment of the story. Without DynamoDB, function and db are nil.
type stage struct {
	api      string
	function *lambdarun.Function
	db       *dynamodb.Client
	runs     *runs  // of the handler
	calls    *calls // to DynamoDB
	missing  string // the reason why there is no DynamoDB
	closers  []func() error
}

func start(ctx context.Context) (_ *stage, err error) {
	st := &stage{runs: &runs{}, calls: &calls{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close())
		}
	}()
	fmt.Println("Looking for DynamoDB Local (a first run downloads about 74 MB) …")
	db, err := dynamotest.Find(ctx)
	if errors.Is(err, dynamotest.ErrUnavailable) {
		st.missing = err.Error()
		return st, st.inProcess(ctx)
	}
	if err != nil {
		return nil, err
	}
	st.closers = append(st.closers, db.Close)
	st.db = db.Client()
	if _, err := st.db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: aws.String(table)}); err != nil {
		if _, none := errors.AsType[*types.ResourceNotFoundException](err); !none {
			return nil, err
		}
	}
	if err := dynamo.CreateTable(ctx, st.db, table); err != nil {
		return nil, err
	}
	return st, st.asLambda(ctx, db.Endpoint)
}

// asLambda runs the example's bootstrap as Lambda does: a process for each
// request at a time.
func (st *stage) asLambda(ctx context.Context, endpoint string) error {
	dir, err := os.MkdirTemp("", "samekey-demo-")
	if err != nil {
		return err
	}
	st.closers = append(st.closers, func() error { return os.RemoveAll(dir) })
	fmt.Println("Building the example's bootstrap …")
	bootstrap := filepath.Join(dir, "bootstrap")
	if err := lambdarun.BuildBootstrap(ctx, "github.com/samekey/samekey/examples/hello", bootstrap); err != nil {
		return err
	}
	counted, err := st.countCalls(ctx, endpoint)
	if err != nil {
		return err
	}
	st.function, err = lambdarun.Start(ctx, lambdarun.Config{
		Name: "hello", Binary: bootstrap, Timeout: timeout, MaxConcurrency: 60, Stderr: st.runs,
		Env: []string{
			"IDEM_TABLE=" + table, "AWS_ENDPOINT_URL_DYNAMODB=" + counted, "AWS_REGION=us-east-1",
			"AWS_ACCESS_KEY_ID=demo", "AWS_SECRET_ACCESS_KEY=demo",
		},
	})
	if err != nil {
		return err
	}
	st.closers = append(st.closers, st.function.Close)
	return st.serve(ctx, st.function)
}

// inProcess runs the same handler in this process on the memory store.
func (st *stage) inProcess(ctx context.Context) error {
	engine := idem.New(&idem.MemoryStore{}, func(o *idem.Options) { o.MaxBody = 2 << 20 })
	hello := lambda.Wrap(engine, lambda.HTTPAPI, greeting.Greeter{Log: st.runs}.Hello)
	fn := lambdarun.InProcess(hello, timeout)
	st.closers = append(st.closers, fn.Close)
	return st.serve(ctx, fn)
}

// serve puts the HTTP API in front, with an authorizer that accepts every token: in the
// demo the token is the user.
func (st *stage) serve(ctx context.Context, fn lambdarun.Invoker) error {
	api := apigateway.HTTPAPI(fn, func(o *apigateway.HTTPAPIOptions) {
		o.Routes = []string{"POST /hello"}
		o.Authorizer = func(r *http.Request) (*apigateway.Identity, error) {
			user, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok || user == "" {
				return nil, errors.New("no token")
			}
			return apigateway.JWT(map[string]string{"iss": "https://issuer.example.com", "sub": user}), nil
		}
	})
	var err error
	st.api, err = st.listen(ctx, api)
	return err
}

// countCalls puts a proxy in front of DynamoDB that counts its operations.
func (st *stage) countCalls(ctx context.Context, endpoint string) (string, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // the signature includes the host
	}}
	return st.listen(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		// on a busy machine the client may repeat a call; a repetition is not counted
		if again := r.Header.Get("Amz-Sdk-Request"); !strings.HasPrefix(again, "attempt=") || strings.HasPrefix(again, "attempt=1;") {
			st.calls.add(op)
		}
		proxy.ServeHTTP(w, r)
	}))
}

func (st *stage) listen(ctx context.Context, h http.Handler) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = srv.Serve(l) }()
	st.closers = append(st.closers, srv.Close)
	return "http://" + l.Addr().String(), nil
}

// close ends everything in the reverse order of its start.
func (st *stage) close() error {
	var errs []error
	for _, c := range slices.Backward(st.closers) {
		errs = append(errs, c())
	}
	st.closers = nil
	return errors.Join(errs...)
}

// runs counts how often the handler ran, by the line that each run writes.
type runs struct {
	mu   sync.Mutex
	n    int
	rest []byte
}

func (r *runs) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest = append(r.rest, p...)
	for {
		line, rest, ok := bytes.Cut(r.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		if bytes.HasPrefix(line, []byte("greeting ")) {
			r.n++
		}
		r.rest = rest
	}
}

func (r *runs) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// calls counts DynamoDB operations.
type calls struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *calls) add(op string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[op]++
}

// take returns the counts and sets them to zero.
func (c *calls) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.n
	c.n = nil
	return n
}
