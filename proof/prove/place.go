package main

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
)

// Place is a deployed stack.
type Place struct {
	StandIn string // names what stands in for AWS; "" in an account
	API     string // base URL; "" on a stand-in that has none
	// REST and URL are the other fronts of the plain handler; "" if there is none.
	REST, URL string
	Samekey   string // the command, on this machine
	HTTP      *http.Client
	DB        *dynamodb.Client
	Streams   *dynamodbstreams.Client
	Lambda    *lambda.Client
	// Functions.
	Booker, Worker string
	// GivenUp returns the batches of the stream that were given up, as their destination has them.
	GivenUp func(context.Context) ([][]byte, error)
	// Hidden returns how many messages are in flight in the tickets' queue.
	Hidden func(context.Context) (int, error)
	// Swept is how many records the sweep has to look through.
	Swept int
	// Tables.
	Rides, Audit, Provider, Semantics, Records string
	// Timeout is the functions' time limit.
	Timeout time.Duration
	Alarms  *cloudwatch.Client
	// Stack begins the names of the alarms; Rings is how late an alarm may ring.
	Stack string
	Rings time.Duration
	// Local says that the stand-in is this machine, whose differences are known. Of another
	// stand-in they aren't, and nothing fails there.
	Local bool

	meter                *meter
	skew                 time.Duration // by which AWS's clock is ahead of this machine's
	looks                []bool        // at the tickets' queue: whether they saw a message in flight
	parked               *stream.Entry // the job that the run has parked
	parkedAt, redrivenAt time.Time
	found                map[state.Reason]time.Time // by sweeps, and since when
}

// now is AWS's time.
func (p *Place) now() time.Time { return time.Now().Add(p.skew) }

// Site is where a stack can be deployed.
type Site interface {
	// Where names the site for the question: account and Region.
	Where() string
	Region() string
	// StandIn names what stands in for AWS; "" in an account.
	StandIn() string
	// Program tells the system that the functions run on, as Go names it, and whether they
	// are deployed from a bucket, not from a folder.
	Program() (system, arch string, packaged bool)
	// Deploy makes the stack of a run. After an error some of it may be there.
	Deploy(ctx context.Context, run string, expires time.Time, app App, m *meter) (*Place, error)
	// Remove removes all that Deploy made, and may be called again. It doesn't touch what
	// another run or program made.
	Remove(ctx context.Context) error
}
