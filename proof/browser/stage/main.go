// Command stage sets the stage for the tests of the page in a browser: DynamoDB Local,
// with tables that the engine has filled, and a client that can be told to ask again. It
// prints one line of JSON, and ends when its standard input does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		os.Exit(1)
	}
}

// ready is the line of JSON.
type ready struct {
	Endpoint string `json:"endpoint"` // of DynamoDB Local
	Client   string `json:"client"`   // POST {"table", "key"}: a client asks with that key
	Key      string `json:"key"`      // whose operation is stuck
	Scope    string `json:"scope"`
	Awkward  string `json:"awkward"` // a text that a shell takes for something else
}

func run(ctx context.Context) (err error) {
	db, err := dynamotest.Find(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// A busy machine answers late; without retries nothing would come of it.
	client := db.Client(func(o *dynamodb.Options) { o.HTTPClient = http.DefaultClient })
	st := &stage{client: client, apps: make(map[string]*app)}
	for _, fill := range []func(context.Context) error{st.requests, st.several, st.hostile, st.awkward, st.empty} {
		if err := fill(ctx); err != nil {
			return err
		}
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: st.clients(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(ln) }()
	defer func() { err = errors.Join(err, server.Close()) }()
	line, err := json.Marshal(ready{Endpoint: db.Endpoint, Client: "http://" + ln.Addr().String(), Key: stuckKey, Scope: scope, Awkward: awkward})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, string(line))
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}

// stage has the tables.
type stage struct {
	client *dynamodb.Client
	apps   map[string]*app
}

// app is an application on a table of its own.
type app struct {
	table  string
	store  *dynamo.Store
	engine *idem.Engine
	lost   atomic.Bool // the provider's answers get lost
}

func (st *stage) app(ctx context.Context, table string) (*app, error) {
	if _, err := st.client.CreateTable(ctx, dynamo.CreateTableInput(table)); err != nil {
		return nil, err
	}
	waiter := dynamodb.NewTableExistsWaiter(st.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 50 * time.Millisecond })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, 10*time.Minute); err != nil {
		return nil, err
	}
	store, err := dynamo.New(st.client, table)
	if err != nil {
		return nil, err
	}
	a := &app{table: table, store: store, engine: idem.New(store, func(o *idem.Options) {
		o.Namespace = "rides"
		o.Logger = slog.New(slog.DiscardHandler)
	})}
	st.apps[table] = a
	return a, nil
}

var errLost = errors.New("the provider's answer was lost: read tcp 10.0.3.7:51402->10.8.0.12:443: i/o timeout")

// jane is the caller of all requests, and scope is hers.
var jane = idem.Identity{Kind: "jwt", Subject: "jane@example.com"}

const scope = "jwt:jane@example.com"

// charged is what the provider's call comes to.
type charged struct {
	ID     string `json:"id"`
	Amount int    `json:"amount"`
	Paid   bool   `json:"paid"`
	Note   string `json:"note,omitempty"`
}

// ride is a handler with three phases and a job.
func (a *app) ride(ctx context.Context, key string) (idem.Result, error) {
	req := idem.Request{
		Key: key, Method: "POST", Route: "POST /rides", Path: "/rides", Body: []byte(`{"card":"4242","to":"Mission"}`),
		Identity: jane,
	}
	return a.engine.Do(ctx, req, func(ctx context.Context) (idem.Response, error) {
		ride, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (string, error) { return "ride_7", nil })
		if err != nil {
			return idem.Response{}, err
		}
		charge, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (charged, error) {
			if a.lost.Load() {
				return charged{}, errLost
			}
			return charged{ID: "ch_1", Amount: 1200}, nil
		}, idem.NotIdempotent())
		if err != nil {
			return idem.Response{}, err
		}
		return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
			tx.Stage(idem.NewJob("send_receipt", map[string]string{"ride": ride}))
			return idem.Response{Status: 201, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"ride":"` + ride + `","charge":"` + charge.ID + `"}`)}, nil
		})
	})
}

// clients lets tests act as the client of a table's application.
func (st *stage) clients() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Table, Key string
			Lost       bool // the provider's answer gets lost
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || st.apps[in.Table] == nil {
			http.Error(w, "no such table", http.StatusBadRequest)
			return
		}
		a := st.apps[in.Table]
		a.lost.Store(in.Lost)
		res, err := a.ride(r.Context(), in.Key)
		out := map[string]any{"status": res.Status, "body": string(res.Body), "replayed": res.Replayed}
		if err != nil {
			out["error"] = err.Error()
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}
