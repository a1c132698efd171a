package stream_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/internal/tabletest"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// meanwhile is a client that lets another writer come in before its first update.
type meanwhile struct {
	*dynamodb.Client
	do func()
	at string // with which the key of the write begins: a sweep may write its cursor before
}

func (m *meanwhile) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if do := m.do; do != nil && strings.HasPrefix(in.Key["pk"].(*types.AttributeValueMemberS).Value, m.at) {
		m.do = nil
		do()
	}
	return m.Client.UpdateItem(ctx, in, opts...)
}

// The races about the index, each by itself: a writer has read the record, another one
// writes, and then the first one writes.
func TestWaitingRaces(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Now().Truncate(time.Millisecond)
	refused := errors.New("refused")
	type races struct {
		*tabletest.Table
		read *store.Record // as the first writer knows it
	}
	fail := func(tab *races, s *dynamo.Store, job string) error {
		_, err := stream.Fail(ctx, s, tab.read, map[string]error{job: refused}, 1)
		return err
	}
	park := func(job string) func(*races, *dynamo.Store) error {
		return func(tab *races, s *dynamo.Store) error { return fail(tab, s, job) }
	}
	redrive := func(names ...string) func(*races, *dynamo.Store) error {
		return func(tab *races, s *dynamo.Store) error {
			_, err := stream.Redrive(ctx, s, tab.read.PK, tab.read.ID, "jane", names...)
			return err
		}
	}
	ack := func(job string) func(*races, *dynamo.Store) error {
		return func(tab *races, s *dynamo.Store) error { return stream.Ack(ctx, s, tab.read, job) }
	}
	commit := func(change func(*store.Record) *store.Record) func(*races, *dynamo.Store) error {
		return func(tab *races, s *dynamo.Store) error {
			next := change(tab.read)
			state.Stamp(next, tab.read, tab.read.Owner)
			_, err := s.Commit(ctx, store.Commit{Prev: tab.read, Next: next})
			return err
		}
	}
	giveUp := commit(func(r *store.Record) *store.Record { return state.MadeStuck(r, now, "why") })
	finish := commit(func(r *store.Record) *store.Record {
		return state.Finished(r, store.Response{Status: 201}, now)
	})
	settle := commit(func(r *store.Record) *store.Record {
		next, err := state.Settled(r, state.Settlement{}, now)
		if err != nil {
			t.Error(err)
		}
		return next
	})
	type write = func(*races, *dynamo.Store) error
	for name, tt := range map[string]struct {
		before      []write // and then the first writer reads
		first, then write   // first comes in between, and then acts on what was read
		want        []stream.Reason
	}{
		"a job is parked, and its record settled":             {[]write{giveUp}, park("0.0"), settle, []stream.Reason{stream.ReasonParked}},
		"a job is redriven, and its record settled":           {[]write{park("0.0"), giveUp}, redrive(), settle, nil},
		"one of two jobs is redriven, and its record settled": {[]write{park("0.0"), park("0.1"), giveUp}, redrive("0.0"), settle, []stream.Reason{stream.ReasonParked}},
		"a job is parked, and its record given up":            {nil, park("0.0"), giveUp, []stream.Reason{stream.ReasonStuck}},
		"a record is given up, and its job parked":            {nil, giveUp, park("0.0"), []stream.Reason{stream.ReasonStuck}},
		"a record is given up, and its job redriven":          {[]write{park("0.0")}, giveUp, redrive(), []stream.Reason{stream.ReasonStuck}},
		"two jobs are redriven one by one":                    {[]write{park("0.0"), park("0.1")}, redrive("0.1"), redrive("0.0"), nil},
		"a job is parked, and another redriven":               {[]write{park("0.0")}, park("0.1"), redrive("0.0"), []stream.Reason{stream.ReasonParked}},
		"a job is parked, and delivered":                      {nil, park("0.0"), ack("0.0"), nil},
		"the last job is parked, and delivered":               {[]write{ack("0.1"), finish}, park("0.0"), ack("0.0"), nil},
		"a job is delivered beside a parked job":              {[]write{park("0.1")}, nil, ack("0.0"), []stream.Reason{stream.ReasonParked}},
		"a record is settled, and a job of it delivered":      {[]write{park("0.0"), giveUp}, settle, ack("0.0"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := &races{Table: tabletest.New(t)}
			claimed := state.Claimed(store.Record{PK: "v1##race", ID: "i", Fingerprint: "f"}, now, now.Add(time.Hour), state.Life{})
			claimed = state.Advanced(claimed, now, []store.Phase{{Name: "one"}}, map[string]store.Job{
				"0.0": {Kind: "mail", Args: []byte("{}")}, "0.1": {Kind: "mail", Args: []byte("{}")},
			}, nil)
			state.Stamp(claimed, nil, "a")
			if held, err := tab.Store.Claim(ctx, store.Claim{Next: claimed, Now: now}); held != nil || err != nil {
				t.Fatal(held, err)
			}
			load := func() {
				t.Helper()
				var err error
				if tab.read, err = tab.Store.Load(ctx, claimed.PK); err != nil {
					t.Fatal(err)
				}
			}
			load()
			do := func(w write, s *dynamo.Store) {
				t.Helper()
				if err := w(tab, s); err != nil {
					t.Error(err)
				}
			}
			for _, w := range tt.before {
				do(w, tab.Store)
				load()
			}
			client := &meanwhile{Client: tab.Client}
			if tt.first != nil {
				client.do = func() { do(tt.first, tab.Store) }
			}
			late, err := dynamo.New(client, tab.Name)
			if err != nil {
				t.Fatal(err)
			}
			do(tt.then, late)
			if client.do != nil {
				t.Error("nobody came in between: the test shows nothing")
			}
			var got []stream.Reason
			for e, err := range stream.NewWaiting(tab.Client, tab.Store).All(ctx) {
				if err != nil || e.PK != claimed.PK {
					t.Error(e, err)
				}
				got = append(got, e.Reason)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("waits for (-want +got):\n%s", diff)
			}
		})
	}
}
