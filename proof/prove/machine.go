package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/local/stack"
	"github.com/samekey/samekey/internal/servers/mendstream"
)

// Machine is this machine as a [Site]: samekey local with its sandboxes, DynamoDB Local and
// ElasticMQ.
type Machine struct {
	Logs    io.Writer // of the functions
	running *stack.Stack
}

// Where implements [Site].
func (*Machine) Where() string { return "no account, but on this machine" }

// Region implements [Site].
func (*Machine) Region() string { return "us-east-1" }

// StandIn implements [Site].
func (*Machine) StandIn() string {
	return "samekey local: processes for functions, DynamoDB Local for DynamoDB, ElasticMQ for SQS"
}

// Program implements [Site].
func (*Machine) Program() (system, arch string, packaged bool) {
	return runtime.GOOS, runtime.GOARCH, false
}

// localTimeout is the time limit of functions on this machine.
const localTimeout = 2 * time.Second

// Deploy implements [Site].
func (s *Machine) Deploy(ctx context.Context, name string, _ time.Time, app App, m *meter) (*Place, error) {
	var err error
	s.running, err = stack.Start(ctx, stack.Options{
		Template: filepath.Join(app.Dir, templateFile), StackName: name, Logs: s.Logs,
		Overrides: stack.Overrides{FunctionTimeout: aws.Duration(localTimeout)},
	})
	if err != nil {
		return nil, err
	}
	ready, o := s.running.Ready(), s.running.Database().Options()
	cfg := metered(aws.Config{Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient, BaseEndpoint: o.BaseEndpoint}, m)
	return &Place{
		StandIn: s.StandIn(), API: ready.API, REST: ready.APIs["RestApi"], HTTP: client(), Timeout: localTimeout, Local: true,
		DB: dynamodb.NewFromConfig(cfg, dynamo.Tune),
		Streams: dynamodbstreams.NewFromConfig(cfg, func(o *dynamodbstreams.Options) {
			o.HTTPClient = &http.Client{Transport: mendstream.Transport(http.DefaultTransport)}
		}),
		Rides: name + "-rides", Audit: name + "-audit", Provider: name + "-provider", Semantics: name + "-semantics", Stack: name, Records: ready.Table,
		Worker: "Samekey.Worker", Swept: 1000, Lambda: lambda.NewFromConfig(cfg, func(o *lambda.Options) { o.BaseEndpoint = &ready.Lambda }),
		GivenUp: func(ctx context.Context) ([][]byte, error) { return givenUp(ctx, ready.Control) },
		Hidden: func(ctx context.Context) (int, error) {
			return tickets(ctx, sqs.New(sqs.Options{Region: o.Region, Credentials: o.Credentials, BaseEndpoint: &ready.SQS}))
		},
	}, nil
}

// tickets asks the queue of the worker's tickets how many are in flight.
func tickets(ctx context.Context, client *sqs.Client) (int, error) {
	all, err := client.ListQueues(ctx, &sqs.ListQueuesInput{})
	if err != nil {
		return 0, plainError(err)
	}
	for _, url := range all.QueueUrls {
		if strings.Contains(url, "Tickets") && !strings.Contains(url, "DeadLetters") {
			return hidden(ctx, client, url)
		}
	}
	return 0, fmt.Errorf("no queue of %v is that of tickets", all.QueueUrls)
}

// givenUp asks the control server.
func givenUp(ctx context.Context, control string) (all [][]byte, _ error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, control+"/failed", nil)
	if err != nil {
		return nil, err
	}
	resp, err := client().Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var failed []stack.Failed
	if err := json.NewDecoder(resp.Body).Decode(&failed); err != nil {
		return nil, err
	}
	for _, f := range failed {
		all = append(all, f.Record)
	}
	return all, nil
}

// Remove implements [Site].
func (s *Machine) Remove(context.Context) error {
	if s.running == nil {
		return nil
	}
	if err := s.running.Close(); err != nil {
		return errors.Join(errors.New("samekey local doesn't end"), err)
	}
	return nil
}

// client sends each request once.
func client() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives = true // net/http repeats a request with a key if a connection that it used again breaks
	return &http.Client{Transport: t}
}
