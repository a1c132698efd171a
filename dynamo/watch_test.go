package dynamo_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// The meter of a request and the hook see each call that reaches DynamoDB, with the
// units that it costs. Without Units nobody asks for them.
func TestCallsAndUnitsAreTold(t *testing.T) {
	t.Parallel()
	for _, units := range []bool{true, false} {
		var told []store.Call
		var ended []idem.Summary
		tab := newTable(t, func(o *dynamo.Options) {
			o.Units = units
			o.Hooks.Called = func(_ context.Context, c store.Call) { told = append(told, c) }
		})
		engine := tab.Engine(func(o *idem.Options) {
			o.Hooks.Ended = func(_ context.Context, s idem.Summary) { ended = append(ended, s) }
		})
		ctx := t.Context()
		for range 2 { // a new request, then its replay
			if _, err := engine.Do(ctx, tabletest.Post("k", "{}"), tabletest.Created("{}")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tab.Store.Load(ctx, "nothing"); err != nil {
			t.Fatal(err)
		}
		unit := 0.0
		if units {
			unit = 1
		}
		want := []store.Cost{{Calls: 2, WriteUnits: 2 * unit}, {Calls: 1, WriteUnits: unit}}
		if diff := cmp.Diff(want, []store.Cost{ended[0].Cost, ended[1].Cost}); diff != "" {
			t.Errorf("units %v: costs (-want +got):\n%s", units, diff)
		}
		var ops []string
		for _, c := range told {
			if ops = append(ops, c.Op); c.Duration <= 0 || c.Begun.IsZero() || c.Fault != store.NoFault {
				t.Errorf("told %+v", c)
			}
		}
		if want := []string{"PutItem", "UpdateItem", "PutItem", "GetItem"}; !slices.Equal(ops, want) {
			t.Errorf("told of %q, want %q", ops, want)
		}
		if read := told[3].ReadUnits; read != unit { // strongly consistent, and a missing item costs a unit
			t.Errorf("units %v: a read of %v units", units, read)
		}
	}
}

// Each error is of one kind, whether the service or the network made it.
func TestFaultsOfCalls(t *testing.T) {
	t.Parallel()
	cancelled := func(codes ...string) error {
		err := &types.TransactionCanceledException{}
		for _, code := range codes {
			err.CancellationReasons = append(err.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
		}
		return err
	}
	for name, tt := range map[string]struct {
		err  error
		want store.Fault
	}{
		"none":                      {nil, store.NoFault},
		"a refused condition":       {&types.ConditionalCheckFailedException{}, store.NoFault},
		"too much throughput":       {&types.ProvisionedThroughputExceededException{}, store.Throttled},
		"throttled":                 {&types.ThrottlingException{}, store.Throttled},
		"the account's limit":       {&types.RequestLimitExceeded{}, store.Throttled},
		"a conflict":                {&types.TransactionConflictException{}, store.Conflict},
		"another region's write":    {&types.ReplicatedWriteConflictException{}, store.Conflict},
		"a cancelled transaction":   {cancelled("None", "TransactionConflict"), store.Conflict},
		"a throttled transaction":   {cancelled("ThrottlingError", "None"), store.Throttled},
		"a transaction's condition": {cancelled("ConditionalCheckFailed", "None"), store.NoFault},
		"a malformed transaction":   {cancelled("None", "ValidationError"), store.Invalid},
		"no such table":             {&types.ResourceNotFoundException{}, store.Invalid},
		"no right":                  {&codedError{"AccessDeniedException"}, store.Denied},
		"no key":                    {&codedError{"KMSDisabledException"}, store.Denied},
		"old credentials":           {&codedError{"ExpiredTokenException"}, store.Denied},
		"malformed":                 {&codedError{"ValidationException"}, store.Invalid},
		"the service failed":        {&types.InternalServerError{}, store.Unknown},
		"no connection":             {errors.New("connection refused"), store.Unknown},
		"time is over":              {context.DeadlineExceeded, store.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []store.Call
			st, err := dynamo.New(stubAPI{refusal: tt.err}, "table", func(o *dynamo.Options) {
				o.Hooks = dynamo.Join(o.Hooks, dynamo.Hooks{Called: func(_ context.Context, c store.Call) { told = append(told, c) }}, dynamo.Hooks{},
					dynamo.Hooks{Called: func(_ context.Context, c store.Call) { told = append(told, c) }})
			})
			if err != nil {
				t.Fatal(err)
			}
			var meter store.Meter
			_, _ = st.Claim(store.WithMeter(t.Context(), &meter), store.Claim{Next: &store.Record{PK: "pk", State: store.Open, Owner: "o", Ver: 1}})
			if len(told) != 2 || told[0].Fault != tt.want || !errors.Is(told[0].Err, tt.err) || told[1].Fault != tt.want {
				t.Errorf("told %+v, want %q", told, tt.want)
			}
			if got := meter.Cost(); got.Calls != 1 || (got.Faults[tt.want] == 1) != (tt.want != store.NoFault) {
				t.Errorf("the meter has %+v", got)
			}
		})
	}
}

type codedError struct{ code string }

func (e *codedError) Error() string { return e.code }

func (e *codedError) ErrorCode() string { return e.code }

func (e *codedError) ErrorMessage() string { return "" }

func (e *codedError) ErrorFault() (f smithy.ErrorFault) { return f }

// What the client sends again is told, whether the call succeeds in the end or not.
func TestRetriesOfTheClientAreTold(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failures, want int
		fault          store.Fault
	}{"none": {0, 0, store.NoFault}, "two": {2, 2, store.NoFault}, "too many": {100, 5, store.Throttled}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told []store.Call
			client := stubOf(&throttles{failures: tt.failures})
			st, err := dynamo.New(client, "table", func(o *dynamo.Options) {
				o.Hooks.Called = func(_ context.Context, c store.Call) { told = append(told, c) }
			})
			if err != nil {
				t.Fatal(err)
			}
			_, _ = st.Load(t.Context(), "pk")
			if len(told) != 1 || told[0].Retries != tt.want || told[0].Fault != tt.fault {
				t.Errorf("told %+v, want %d retries", told, tt.want)
			}
		})
	}
}

// throttles refuses the first requests.
type throttles struct{ failures int }

func (s *throttles) Do(r *http.Request) (*http.Response, error) {
	body, status := "{}", http.StatusOK
	if s.failures--; s.failures >= 0 {
		body, status = `{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException","message":"slow down"}`, http.StatusBadRequest
	}
	return &http.Response{
		StatusCode: status, Request: r, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func stubOf(transport dynamodb.HTTPClient) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "eu-central-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	}, dynamo.Tune, func(o *dynamodb.Options) {
		o.HTTPClient, o.DisableValidateResponseChecksum = transport, true
	})
}
