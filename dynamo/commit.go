package dynamo

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/internal/state"
)

// Commit implements [store.Store] by one conditional UpdateItem, or by one
// TransactWriteItems if the commit has writes of the user. Before that, Commit writes
// the companions of a large body. If another write has changed the record's jobs or
// decisions meanwhile, Commit sends its write again. Commit never puts the whole item,
// so attributes unknown to this program remain.
func (s *Store) Commit(ctx context.Context, c store.Commit) (*store.Record, error) {
	writes, err := s.fold(c.Writes)
	if err != nil {
		return nil, err
	}
	if o := c.Prev.Overflow; o != nil && state.AnswerGoes(c.Prev, c.Next) {
		// Drop the companions before the commit, because after the commit no record
		// names them.
		if err := s.dropChunks(ctx, c.Prev.PK, o); err != nil {
			return nil, fmt.Errorf("dynamo: remove body: %w", err)
		}
	}
	held, err := s.commit(ctx, c, writes)
	for round := 1; ; round++ {
		again, refused := withJobs(c, held)
		if !refused {
			break
		}
		if round == waitRounds || state.DropsJobs(c.Prev, c.Next) {
			return nil, fmt.Errorf("dynamo: commit: %w: other writes deliver, park and redrive its jobs", store.ErrConflict)
		}
		held, err = s.commit(ctx, again, writes)
	}
	if c.Prev.Input != nil && c.Prev.Input.Overflow != nil {
		held, err = s.tendInput(ctx, c, held, err)
	}
	return held, err
}

// waitRounds is how often a commit is sent at most. A commit is sent again if a job of
// the record was parked or redriven meanwhile, which is rare.
const waitRounds = 5

// If commit c was refused because the record's jobs or decisions have changed, withJobs
// returns a copy of c that can be sent again. The copy has the jobs and decisions of
// held, the record that refused c. If held is nil, no record refused c, and withJobs
// returns false. If held has another owner or version than c.Prev, c was refused for
// this reason, and withJobs returns false too.
func withJobs(c store.Commit, held *store.Record) (store.Commit, bool) {
	if held == nil || held.Owner != c.Prev.Owner || held.Ver != c.Prev.Ver {
		return c, false
	}
	prev, next := *c.Prev, *c.Next
	staged := maps.Clone(next.Jobs)
	maps.DeleteFunc(staged, func(name string, _ store.Job) bool { _, known := prev.Jobs[name]; return known })
	prev.Jobs, prev.WaitSince, prev.Settled, next.Settled = held.Jobs, held.WaitSince, held.Settled, held.Settled
	if n := len(c.Next.Settled); n > 0 && !slices.EqualFunc(c.Prev.Settled, c.Next.Settled, store.Decision.Equal) {
		next.Settled = state.Newest(append(slices.Clone(held.Settled), c.Next.Settled[n-1]))
	}
	next.Jobs = state.Merged(held.Jobs, staged)
	state.WaitFrom(&next, next.Run)
	c.Prev, c.Next = &prev, &next
	return c, true
}

func (s *Store) commit(ctx context.Context, c store.Commit, writes []*Write) (*store.Record, error) {
	u, err := s.update(ctx, c)
	if err == nil {
		err = leavesRoom(c.Prev, c.Next, u.Box, u.args[":resp"])
	}
	if err != nil {
		return nil, err
	}
	u.in = dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 u.Key(c.Prev.PK),
		ConditionExpression:                 &u.condition,
		UpdateExpression:                    u.expression(),
		ExpressionAttributeNames:            u.names,
		ExpressionAttributeValues:           u.args,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	held, err := s.sendUpdate(ctx, &u.in, writes)
	return s.unsealed(ctx, held, err, c.Next, c.Prev)
}

// sendUpdate sends a holder's write, alone or in one transaction with the user's
// writes.
func (s *Store) sendUpdate(ctx context.Context, in *dynamodb.UpdateItemInput, writes []*Write) (*store.Record, error) {
	if len(writes) > 0 {
		return s.transact(ctx, []types.TransactWriteItem{{Update: &types.Update{
			TableName: in.TableName, Key: in.Key, ConditionExpression: in.ConditionExpression, UpdateExpression: in.UpdateExpression,
			ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
		}}}, in.ExpressionAttributeValues, writes)
	}
	if _, err := s.api.UpdateItem(ctx, in); err != nil {
		return item.WriteError("commit", err)
	}
	return nil, nil
}
