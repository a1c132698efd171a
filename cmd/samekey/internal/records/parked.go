package records

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
)

// Parked selects parked jobs of many records. A job must match all fields that are set.
type Parked struct {
	Kind      string        // kind of the job
	Cause     string        // part of the job's last error
	Older     time.Duration // minimum time for which the record has waited for people
	Namespace string        // namespace of the record; ignored if Only is false
	Only      bool
}

// Found returns the records that wait for people and have jobs that p selects. The result
// unread contains an error for each record that can't be read.
func (p Parked) Found(ctx context.Context, client *dynamodb.Client, s *dynamo.Store, now time.Time) (found []*store.Record, unread []error, _ error) {
	for e, err := range stream.NewWaiting(client, s).All(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if e.Reason == state.ReasonUnreadable || now.Sub(e.Since) < p.Older || p.Only && state.Namespace(e.PK) != p.Namespace {
			continue
		}
		rec, err := s.Load(ctx, e.PK)
		switch {
		case errors.Is(err, store.ErrCorrupt):
			unread = append(unread, fmt.Errorf("record %s was skipped: %w", plain.Line(e.PK), err))
		case err != nil && !errors.Is(err, store.ErrSealed):
			return nil, nil, err
		case len(p.Of(rec)) > 0:
			found = append(found, rec)
		}
	}
	return found, unread, nil
}

// Of returns the names of the jobs in rec that match p.Kind and p.Cause. rec may be nil.
func (p Parked) Of(rec *store.Record) (names []string) {
	if rec == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(rec.Jobs)) {
		if j := rec.Jobs[name]; j.Failed != "" && (p.Kind == "" || j.Kind == p.Kind) && strings.Contains(j.Failed, p.Cause) {
			names = append(names, name)
		}
	}
	return names
}

// Redrive redrives the jobs in these records that match p.Kind and p.Cause. It returns the
// number of redriven jobs. The error names each record of which no job was redriven.
func (p Parked) Redrive(ctx context.Context, s *dynamo.Store, by string, records []*store.Record) (n int, err error) {
	for _, rec := range records {
		one, rerr := redrive(ctx, s, rec, by, p.Of(rec))
		n += one
		if rerr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", plain.Line(rec.PK), rerr))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return n, err
}
