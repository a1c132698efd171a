package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/testkit/tap"
)

// stage is the environment of the story: a database that all stacks use, and the taps
// that count and cut calls.
type stage struct {
	db       *dynamotest.DB
	direct   *dynamodb.Client // a client that bypasses the tap
	database tap.Tap          // in front of DynamoDB; the functions use this tap
	front    tap.Tap          // in front of the API; the client uses this tap
	tapURL   string           // URL of database
	logs     *os.File         // logs of all stacks
	closers  []func() error
}

func open(ctx context.Context) (_ *stage, err error) {
	if _, err := os.Stat("examples/rides"); err != nil {
		return nil, errors.New("run this by make demo, in the folder of the Makefile")
	}
	st := &stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, st.close(false))
		}
	}()
	if st.logs, err = os.CreateTemp("", "samekey-demo-*.log"); err != nil {
		return nil, err
	}
	fmt.Println("Looking for DynamoDB Local (a first run downloads about 74 MB) …")
	if st.db, err = dynamotest.Find(ctx); err != nil {
		return nil, err
	}
	st.closers = append(st.closers, st.db.Close)
	st.direct = st.db.Client()
	target, err := url.Parse(st.db.Endpoint)
	if err != nil {
		return nil, err
	}
	st.tapURL, err = st.serve(ctx, st.database.Handler(target, tap.DynamoDB))
	return st, err
}

// serve serves h on a free port.
func (st *stage) serve(ctx context.Context, h http.Handler) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = srv.Serve(l) }()
	st.closers = append(st.closers, srv.Close)
	return "http://" + l.Addr().String(), nil
}

// close ends everything in the reverse order of its start. keepLogs keeps the logs
// for a person to read.
func (st *stage) close(keepLogs bool) error {
	var errs []error
	for _, end := range slices.Backward(st.closers) {
		errs = append(errs, end())
	}
	st.closers = nil
	if st.logs != nil {
		errs = append(errs, st.logs.Close())
		if keepLogs {
			fmt.Fprintln(os.Stderr, "The logs of all processes are in", st.logs.Name())
		} else {
			errs = append(errs, os.Remove(st.logs.Name()))
		}
		st.logs = nil
	}
	return errors.Join(errs...)
}
