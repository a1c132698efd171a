package stream

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/item"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

const fakeTable = "records"

// restless is a table in memory that others write to.
type restless struct {
	fakedynamo.DB
	before func() // each update; nil: nothing
	fails  error  // the answer to each update; nil: the table's own

	updates int
}

func (r *restless) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if r.updates++; r.before != nil {
		r.before()
	}
	if r.fails != nil {
		return nil, r.fails
	}
	return r.DB.UpdateItem(ctx, in, opts...)
}

// edit changes an item past all conditions.
func (r *restless) edit(t testing.TB, pk, update string, names map[string]string, values item.Map) {
	t.Helper()
	if _, err := r.DB.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(fakeTable), Key: item.Key(pk), UpdateExpression: &update, ExpressionAttributeNames: names, ExpressionAttributeValues: values,
	}); err != nil {
		t.Error(err)
	}
}

// open is the table's store, with a finished record that has jobs.
func (r *restless) open(t testing.TB, jobs map[string]store.Job) (*dynamo.Store, *store.Record) {
	t.Helper()
	s, err := dynamo.New(r, fakeTable)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Millisecond)
	rec := &store.Record{
		PK: "v1##finished", State: store.Done, Owner: "o", Ver: 2, ID: "i", Keep: store.KeepJobs, Until: now.Add(time.Hour).Truncate(time.Second),
		Response: &store.Response{Status: 201}, Jobs: jobs, Fingerprint: "f", Created: now, Run: now, Route: "POST /orders",
	}
	state.WaitFrom(rec, now)
	if held, err := s.Claim(t.Context(), store.Claim{Next: rec, Now: now}); err != nil || held != nil {
		t.Fatal(held, err)
	}
	r.updates = 0
	return s, rec
}

// A write about jobs is sent six times while its result is unknown, and once if another
// time can't help, or if the time is over.
func TestWriteAboutJobsIsSentAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		ended  bool
		want   error
		sent   int
	}{
		"the record is in a transaction": {&types.TransactionConflictException{}, false, store.ErrConflict, 6},
		"the result is unknown":          {&types.InternalServerError{}, false, store.ErrUnknown, 6},
		"the write is forbidden":         {&smithy.GenericAPIError{Code: "AccessDeniedException"}, false, nil, 1},
		"the time is over":               {&types.TransactionConflictException{}, true, store.ErrConflict, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // the pauses are virtual
				db := &restless{}
				s, rec := db.open(t, map[string]store.Job{"0.0": {Kind: "mail"}})
				db.fails = tt.answer
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ended {
					cancel()
				}
				err := Ack(ctx, s, rec, "0.0")
				if err == nil || tt.want != nil && !errors.Is(err, tt.want) || db.updates != tt.sent {
					t.Errorf("sent %d times, want %d: %v", db.updates, tt.sent, err)
				}
			})
		})
	}
}

// Where others write before each write, nobody decides for ever about their records.
func TestNobodyDecidesForEver(t *testing.T) {
	t.Parallel()
	parked := store.Job{Kind: "mail", Tries: 5, Failed: "bad"}
	for name, tt := range map[string]struct {
		jobs  map[string]store.Job
		do    func(*dynamo.Store, *store.Record) error
		first int // writes before the rounds
	}{
		"an acknowledgement in a record that waits for people": {
			map[string]store.Job{"0.0": {Kind: "mail"}, "0.1": parked},
			func(s *dynamo.Store, r *store.Record) error { return Ack(t.Context(), s, r, "0.0") }, 1,
		},
		"a redrive": {
			map[string]store.Job{"0.0": parked, "0.1": parked},
			func(s *dynamo.Store, r *store.Record) error {
				n, err := Redrive(t.Context(), s, r.PK, r.ID, "jane", "0.0")
				if n != 0 {
					t.Errorf("%d jobs are redriven", n)
				}
				return err
			}, 0,
		},
		"a cancellation": {
			map[string]store.Job{"0.0": {Kind: "mail", At: time.Now().Truncate(time.Millisecond)}},
			func(s *dynamo.Store, r *store.Record) error {
				_, err := Cancel(t.Context(), s, r.PK, r.ID, "jane")
				return err
			}, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := &restless{}
			s, rec := db.open(t, tt.jobs)
			ver := rec.Ver
			db.before = func() {
				var v item.Values
				ver++
				db.edit(t, rec.PK, "SET ver = :ver", nil, item.Map{":ver": v.Num(ver)})
			}
			if err := tt.do(s, rec); !errors.Is(err, store.ErrConflict) || db.updates != tt.first+6 {
				t.Errorf("%d writes, want %d: %v", db.updates, tt.first+6, err)
			}
		})
	}
	t.Run("failures of jobs that another drain delivers", func(t *testing.T) {
		t.Parallel()
		all, failures := make(map[string]store.Job), make(map[string]error)
		for i := range 9 {
			name := "0." + strconv.Itoa(i)
			all[name], failures[name] = store.Job{Kind: "mail"}, errors.New("refused")
		}
		db := &restless{}
		s, rec := db.open(t, all)
		db.before = func() {
			db.edit(t, rec.PK, "REMOVE jobs.#j", map[string]string{"#j": "0." + strconv.Itoa(db.updates)}, nil)
		}
		if now, err := Fail(t.Context(), s, rec, failures, 5); !errors.Is(err, store.ErrConflict) || db.updates != 6 {
			t.Errorf("%d writes, want 6: %+v, %v", db.updates, now, err)
		}
	})
	t.Run("the place of a sweep", func(t *testing.T) {
		t.Parallel()
		db := &restless{}
		s, _ := db.open(t, nil)
		table := s.Table()
		p := &pass{now: time.Now, table: &table, tried: make(map[string]int64)}
		p.begin(1, time.Now())
		if _, err := putCursor(t.Context(), table, "", cursor{ver: 1, began: p.began, at: p.at}); err != nil {
			t.Fatal(err)
		}
		db.updates = 0
		db.before = func() {
			var v item.Values
			db.edit(t, cursorPK(""), "SET ver = ver + :one", nil, item.Map{":one": v.Num(1)})
		}
		if p.save(t.Context()); p.err == nil || !strings.Contains(p.err.Error(), "other writes") || db.updates != 6 {
			t.Errorf("%d writes, want 6: %v", db.updates, p.err)
		}
	})
}

var errForbidden error = &smithy.GenericAPIError{Code: "AccessDeniedException"}
