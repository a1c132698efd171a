package semantics

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
)

func TestMain(m *testing.M) { os.Exit(dynamotest.Main(m)) }

func local(t *testing.T) Place {
	t.Helper()
	db := dynamotest.Start(t)
	p := Place{DB: db.Client(dynamo.Tune), Table: "semantics-" + t.Name()}
	o := p.DB.Options()
	p.Streams = dynamodbstreams.New(dynamodbstreams.Options{BaseEndpoint: o.BaseEndpoint, Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient})
	if err := dynamo.CreateTable(t.Context(), p.DB, p.Table); err != nil {
		t.Fatal(err)
	}
	return p
}

// DynamoDB refuses what is invalid by a code, or by the reason of a part; any other refusal shows nothing.
func TestInvalid(t *testing.T) {
	t.Parallel()
	because := func(codes ...string) error {
		failed := &types.TransactionCanceledException{}
		for _, c := range codes {
			failed.CancellationReasons = append(failed.CancellationReasons, types.CancellationReason{Code: &c})
		}
		return failed
	}
	refusal := func(code string) error { return &smithy.GenericAPIError{Code: code} }
	conflict := because("None", "TransactionConflict")
	for _, test := range []struct{ err, want error }{
		{nil, Differs("it was accepted")},
		{refusal("ValidationException"), nil},
		{because("None", "ValidationError"), nil},
		{conflict, conflict},
		{io.EOF, io.EOF},
		{refusal("AccessDenied"), refusal("AccessDenied")},
	} {
		if got := invalid(test.err); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%v: %v, not %v", test.err, got, test.want)
		}
	}
}

// What all examinations may use is what a run is priced by.
func TestPlan(t *testing.T) {
	t.Parallel()
	var writes, reads int
	for _, a := range All() {
		writes, reads = writes+a.Writes, reads+a.Reads
	}
	if writes != 15_150 || reads != 334 {
		t.Errorf("%d writes, %d reads", writes, reads)
	}
}
