package dbfault_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// memory is a database in memory, for requests that go through tr.
func memory(tr *dbfault.Transport) (client, direct *dynamodb.Client) {
	server := &fakedynamo.Server{}
	tr.Base = roundTripper(server.Do)
	direct = (&dynamotest.DB{Endpoint: "http://127.0.0.1:1"}).Client(func(o *dynamodb.Options) { o.HTTPClient = server })
	return dynamodb.New(direct.Options(), func(o *dynamodb.Options) { o.HTTPClient = &http.Client{Transport: tr} }), direct
}

var table = aws.String("table")

func exists(t *testing.T, client *dynamodb.Client, pk string) bool {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: table, Key: map[string]types.AttributeValue{"pk": str(pk)}, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item != nil
}

func as[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

func hasCode(code string) func(error) bool {
	return func(err error) bool {
		apiErr, ok := errors.AsType[smithy.APIError](err)
		return ok && apiErr.ErrorCode() == code
	}
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func TestFaultsOfAPut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		fault   dbfault.Fault
		cancel  bool // whether the context ends while the request is held
		applied bool
		err     func(error) bool // nil if there is none
	}{
		{"none", nil, false, true, nil},
		{"LoseRequest", dbfault.LoseRequest, false, false, is(syscall.ECONNREFUSED)},
		{"LoseAnswer", dbfault.LoseAnswer, false, true, is(syscall.ECONNRESET)},
		{"TearAnswer", dbfault.TearAnswer, false, true, is(io.ErrUnexpectedEOF)},
		{"Answer500", dbfault.Answer500, false, false, as[*types.InternalServerError]},
		{"Answer500Applied", dbfault.Answer500Applied, false, true, as[*types.InternalServerError]},
		{"Throttle", dbfault.Throttle, false, false, as[*types.ProvisionedThroughputExceededException]},
		{"Conflict", dbfault.Conflict, false, false, as[*types.TransactionConflictException]},
		{"AnswerError", dbfault.AnswerError(400, "RequestLimitExceeded", "slow down"), false, false, as[*types.RequestLimitExceeded]},
		{"AnswerError of an unknown code", dbfault.AnswerError(418, "Teapot", "short"), false, false, hasCode("Teapot")},
		{"Delay", dbfault.Delay(time.Millisecond), false, true, nil},
		{"Delay longer than the context", dbfault.Delay(time.Hour), true, false, is(context.Canceled)},
		{"Hang", dbfault.Hang, true, false, is(context.Canceled)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tr := &dbfault.Transport{Fault: func(string, int) dbfault.Fault {
				if tt.cancel {
					cancel()
				}
				return tt.fault
			}}
			client, direct := memory(tr)
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: table, Item: map[string]types.AttributeValue{"pk": str("a"), "body": str(strings.Repeat("x", 100<<10))},
			})
			switch {
			case tt.err == nil && err != nil:
				t.Errorf("PutItem: got %v, want no error", err)
			case tt.err != nil && (err == nil || !tt.err(err)):
				t.Errorf("PutItem: got %v, want another error", err)
			}
			if got := exists(t, direct, "a"); got != tt.applied {
				t.Errorf("applied: got %v, want %v", got, tt.applied)
			}
			if diff := cmp.Diff(map[string]int{"PutItem": 1}, tr.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfATransaction(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		fault   dbfault.Fault
		applied bool
		reasons []string // nil if it isn't cancelled
		message string
	}{
		{"Conflict", dbfault.Conflict, false, []string{"TransactionConflict", "None"}, "[TransactionConflict, None]"},
		{"CancelTransaction", dbfault.CancelTransaction("", "ThrottlingError"), false, []string{"None", "ThrottlingError"}, "[None, ThrottlingError]"},
		{"LoseAnswer", dbfault.LoseAnswer, true, nil, ""},
		{"TearAnswer", dbfault.TearAnswer, true, nil, ""},
		{"Throttle", dbfault.Throttle, false, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := &dbfault.Transport{Fault: func(string, int) dbfault.Fault { return tt.fault }}
			in := &dynamodb.TransactWriteItemsInput{}
			for _, pk := range []string{"a", "b"} {
				in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
					TableName: table, Item: map[string]types.AttributeValue{"pk": str(pk)},
				}})
			}
			client, direct := memory(tr)
			_, err := client.TransactWriteItems(t.Context(), in)
			if err == nil {
				t.Fatal("TransactWriteItems: got no error")
			}
			cancelled, _ := errors.AsType[*types.TransactionCanceledException](err)
			var reasons []string
			if cancelled != nil {
				for _, r := range cancelled.CancellationReasons {
					reasons = append(reasons, aws.ToString(r.Code))
				}
				if got := cancelled.ErrorMessage(); !strings.HasSuffix(got, tt.message) {
					t.Errorf("message: got %q, want it to end in %q", got, tt.message)
				}
			}
			if diff := cmp.Diff(tt.reasons, reasons); diff != "" {
				t.Errorf("%v: reasons (-want +got):\n%s", err, diff)
			}
			if got := exists(t, direct, "b"); got != tt.applied {
				t.Errorf("applied: got %v, want %v", got, tt.applied)
			}
		})
	}
}

func TestFaultIsChosenByOperationAndCount(t *testing.T) {
	t.Parallel()
	tr := &dbfault.Transport{Fault: func(op string, n int) dbfault.Fault {
		if op == "PutItem" && n == 2 {
			return dbfault.Throttle
		}
		return nil
	}}
	client, _ := memory(tr)
	put := func() bool {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: table, Item: map[string]types.AttributeValue{"pk": str("a")}})
		return err == nil
	}
	for round := range 2 {
		got := []bool{put(), exists(t, client, "a"), put(), put()}
		if diff := cmp.Diff([]bool{true, true, false, true}, got); diff != "" {
			t.Errorf("round %d: successes (-want +got):\n%s", round, diff)
		}
		if diff := cmp.Diff(map[string]int{"PutItem": 3, "GetItem": 1}, tr.Calls()); diff != "" || tr.Total() != 4 {
			t.Errorf("round %d: total %d, calls (-want +got):\n%s", round, tr.Total(), diff)
		}
		tr.Reset()
	}
}

func TestTransportIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	faults := []dbfault.Fault{nil, dbfault.LoseRequest, dbfault.LoseAnswer, dbfault.TearAnswer, dbfault.Answer500, dbfault.Answer500Applied, dbfault.Throttle, dbfault.Conflict}
	var mu sync.Mutex
	counts := map[int]bool{}
	tr := &dbfault.Transport{}
	tr.Fault = func(_ string, n int) dbfault.Fault {
		_ = tr.Total() // may be asked from here
		mu.Lock()
		defer mu.Unlock()
		if counts[n] {
			t.Errorf("n = %d came twice", n)
		}
		counts[n] = true
		return faults[n%len(faults)]
	}
	client, _ := memory(tr)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 10 {
				_, _ = client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("table"), Item: map[string]types.AttributeValue{"pk": str("a")}})
			}
		})
	}
	wg.Wait()
	if got := tr.Calls()["PutItem"]; got != 160 || len(counts) != 160 {
		t.Errorf("calls: got %d with %d counts, want 160", got, len(counts))
	}
}

// body tells whether it was closed.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// The contract of http.RoundTripper, and of the connection underneath.
func TestFaultsCloseBodies(t *testing.T) {
	t.Parallel()
	const sent = `{"TransactItems":[{},{},{}]}`
	for _, tt := range []struct {
		name  string
		fault dbfault.Fault
		sends bool
	}{
		{"none", nil, true},
		{"LoseRequest", dbfault.LoseRequest, false},
		{"LoseAnswer", dbfault.LoseAnswer, true},
		{"TearAnswer", dbfault.TearAnswer, true},
		{"Answer500", dbfault.Answer500, false},
		{"Answer500Applied", dbfault.Answer500Applied, true},
		{"Throttle", dbfault.Throttle, false},
		{"Conflict", dbfault.Conflict, false},
		{"CancelTransaction", dbfault.CancelTransaction("None"), false},
		{"Delay", dbfault.Delay(time.Second), true},
		{"Delay longer than the context", dbfault.Delay(time.Hour), false},
		{"Hang", dbfault.Hang, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				request := &body{Reader: strings.NewReader(sent)}
				response := &body{Reader: strings.NewReader("an answer")}
				tr := &dbfault.Transport{
					Fault: func(string, int) dbfault.Fault { return tt.fault },
					Base: roundTripper(func(req *http.Request) (*http.Response, error) {
						got, err := io.ReadAll(req.Body)
						if err := errors.Join(err, req.Body.Close()); err != nil || string(got) != sent {
							t.Errorf("sent %q, %v; want %q", got, err, sent)
						}
						return &http.Response{StatusCode: http.StatusOK, Body: response, Request: req}, nil
					}),
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/", request)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Amz-Target", "DynamoDB_20120810.TransactWriteItems")
				header := req.Header.Clone()
				resp, err := tr.RoundTrip(req)
				if (resp == nil) == (err == nil) {
					t.Fatalf("RoundTrip: got %v and %v, want one of them", resp, err)
				}
				if resp != nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				if !request.closed {
					t.Error("the body of the request wasn't closed")
				}
				if response.closed != tt.sends {
					t.Errorf("answer taken and closed: got %v, want %v", response.closed, tt.sends)
				}
				if diff := cmp.Diff(header, req.Header); diff != "" {
					t.Errorf("the request was changed (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestFaultsReturnTheErrorsOfTheBase(t *testing.T) {
	t.Parallel()
	broken := errors.New("no route")
	for name, fault := range map[string]dbfault.Fault{
		"LoseAnswer": dbfault.LoseAnswer, "TearAnswer": dbfault.TearAnswer, "Answer500Applied": dbfault.Answer500Applied, "Delay": dbfault.Delay(0),
	} {
		for _, base := range []roundTripper{
			func(*http.Request) (*http.Response, error) { return nil, broken },
			func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: &body{Reader: io.MultiReader(strings.NewReader("{"), failing{broken})}}, nil
			},
		} {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			resp, err := fault(base, req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			if !errors.Is(err, broken) {
				t.Errorf("%s: got %v, want %v", name, err, broken)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestTearAnswerCutsTheBodyInTheMiddle(t *testing.T) {
	t.Parallel()
	for whole, want := range map[string]string{"": "", "1": "", "{}": "{", "1234567": "123"} {
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(whole))}, nil
		})
		resp, err := dbfault.TearAnswer(base, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		_, err = got.ReadFrom(resp.Body)
		_ = resp.Body.Close()
		if got.String() != want || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q: got %q, %v; want %q, %v", whole, got.String(), err, want, io.ErrUnexpectedEOF)
		}
	}
}
