package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/tail"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/servers/mendstream"
)

const tailLong = `Follows the table's stream, and prints a line for each change of a record.

A line has the time, the record's short hash as in logs, the route, the states
before and after, the last phase and the number of jobs. It has no key, no body
and no result. Changes of one record come in order. Ctrl-C ends it.

It is a reader of the stream, of which DynamoDB allows two for each shard: the
worker may come late while it runs, if there is another reader too. It reads each
open shard once a second, and the stream 100 times at most: a change is printed some
seconds late if there are hundreds of shards. It prints the price of that first.`

// readsPerSecond are those of tail at most, of all shards. A hundred thousand cost
// $0.02 in us-east-1, as of 2026.
const (
	readsPerSecond = 100
	readPrice      = 0.02 / 100_000
)

func newTail(env environment) *cobra.Command {
	var begin bool
	cmd := &cobra.Command{
		Use:   "tail [--table TABLE] [FLAGS]",
		Short: "Follow the changes of records, live",
		Long:  tailLong,
		Args:  takes(0, 0),
	}
	fs := cmd.Flags()
	op := newOperator(env, fs)
	fs.BoolVar(&begin, "from-start", false, "begin with the oldest change of the stream, up to a day ago")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := op.open(cmd.Context()); err != nil {
			return err
		}
		arn, err := op.stream()
		if err != nil {
			return err
		}
		source := eventsource.Stream{
			Function: env.liner(op.json), API: op.streams(), ARN: arn, StartingPosition: eventsource.Latest,
			PollEvery: time.Second, ReadEvery: time.Second / readsPerSecond, ListEvery: 10 * time.Second,
			Hooks: eventsource.Hooks{
				Error: func(err error) { env.note("samekey tail: %v; it goes on", err) },
				Located: func(open, all int) {
					env.note("samekey tail reads %d of %d shards, at most %d times a second in all: up to $%.2f an hour", open, all, readsPerSecond, float64(min(open, readsPerSecond))*3600*readPrice)
				},
			},
		}
		if begin {
			source.StartingPosition = eventsource.TrimHorizon
		}
		mapping, err := source.Start(cmd.Context())
		if err != nil {
			return err
		}
		env.note("following %s", op.table)
		<-cmd.Context().Done()
		return mapping.Close()
	}
	return exitCodes(cmd, map[int]string{exitDone: "ended by Ctrl-C"})
}

// liner prints the changes of the events that it is invoked with. A stream's shards
// invoke it at once.
func (e environment) liner(asJSON bool) lambdarun.Invoker {
	var line sync.Mutex
	return lambdarun.InvokerFunc(func(_ context.Context, payload []byte) ([]byte, error) {
		changes, err := tail.Changes(payload)
		if err != nil {
			return nil, err
		}
		line.Lock()
		defer line.Unlock()
		for _, c := range changes {
			if asJSON {
				err = e.jsonTo(c, "")
			} else {
				err = e.say("%s", c)
			}
			if err != nil {
				return nil, err
			}
		}
		return []byte("{}"), nil
	})
}

// stream is the ARN of the table's stream.
func (op *operator) stream() (string, error) {
	if op.about == nil {
		return "", fmt.Errorf("the stream of table %s is unknown: it takes the permission dynamodb:DescribeTable", op.table)
	}
	if s := op.about.StreamSpecification; s == nil || !aws.ToBool(s.StreamEnabled) || op.about.LatestStreamArn == nil {
		return "", fmt.Errorf("the table %s has no stream: samekey table create turns it on", op.table)
	}
	return *op.about.LatestStreamArn, nil
}

// streams is a client of the table's streams, which a local database serves too.
func (op *operator) streams() *dynamodbstreams.Client {
	return dynamodbstreams.NewFromConfig(op.sdk, func(o *dynamodbstreams.Options) {
		o.Logger = logging.Nop{}
		if at := cmp.Or(op.endpoint, op.env.getenv("AWS_ENDPOINT_URL_DYNAMODB")); at != "" && o.BaseEndpoint == nil {
			o.BaseEndpoint = &at
			if op.env.http == nil { // DynamoDB Local writes empty maps wrong
				o.HTTPClient = &http.Client{Transport: mendstream.Transport(nil)}
			}
		}
	})
}
