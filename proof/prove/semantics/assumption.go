package semantics

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
)

// Assumption is a behaviour of DynamoDB that code relies on.
type Assumption struct {
	Name, Text string
	// Code are the declarations that rely on it, as dynamo.Store.sendPut.
	Code []string
	// Local is what DynamoDB Local does otherwise; "" if it does the same.
	Local string
	// Figure is the figure of an examination that holds: # stands for a number. "" if it has none.
	Figure string
	// Writes and Reads are the most units that the examination uses.
	Writes, Reads int

	examine func(context.Context, *probe) (figure string, err error)
}

// Place is a table for examinations, of the form of a table of records
// (dynamo.CreateTableInput) and without time to live. Nothing else uses it.
type Place struct {
	DB      *dynamodb.Client
	Streams *dynamodbstreams.Client
	Table   string
	// Settles is for how long an index or a stream may be behind; 0 is 20 seconds.
	Settles time.Duration
}

// Differs is an observation that contradicts an assumption.
type Differs string

func (d Differs) Error() string { return string(d) }

func differs(format string, args ...any) error { return Differs(fmt.Sprintf(format, args...)) }

// IsDifference reports whether an examination contradicts its assumption. Any other error
// says why the examination showed nothing.
func IsDifference(err error) bool {
	_, ok := errors.AsType[Differs](err)
	return ok
}

// Examine observes the behaviour. The figure says how much was observed.
func (a Assumption) Examine(ctx context.Context, p Place) (figure string, err error) {
	p.Settles = cmp.Or(p.Settles, settles)
	return a.examine(ctx, &probe{Place: p, run: rand.Text()})
}
