package semantics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func allOrNone(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("there"), ""); err != nil {
		return "", err
	}
	_, err := p.transact(ctx, "", p.putIn(p.of("a"), ""), p.putIn(p.of("there"), fresh), p.putIn(p.of("b"), ""))
	if _, err := cancelled(err); err != nil {
		return "", err
	}
	for _, name := range []string{"a", "b"} {
		if it, err := p.get(ctx, name); err != nil || len(it) > 0 {
			return "", first(err, differs("the cancelled transaction wrote %s", name))
		}
	}
	if _, err := p.transact(ctx, "", p.putIn(p.of("a"), fresh), p.putIn(p.of("b"), fresh)); err != nil {
		return "", err
	}
	for _, name := range []string{"a", "b"} {
		if it, err := p.get(ctx, name); len(it) == 0 {
			return "", first(err, differs("%s isn't there after the transaction", name))
		}
	}
	return "", nil
}

func cancelledHasItems(ctx context.Context, p *probe) (string, error) {
	held := p.of("b", "holder", str("first"), "ver", num(3))
	if _, err := p.put(ctx, held, ""); err != nil {
		return "", err
	}
	_, err := p.transact(ctx, "", p.putIn(p.of("a"), fresh), p.putIn(p.of("b"), fresh), p.putIn(p.of("c"), fresh))
	reasons, err := cancelled(err)
	if err != nil {
		return "", err
	}
	var codes []string
	for _, r := range reasons {
		codes = append(codes, aws.ToString(r.Code))
	}
	if fmt.Sprint(codes) != "[None ConditionalCheckFailed None]" {
		return "", differs("the reasons are %v", codes)
	}
	return "", same(reasons[1].Item, held)
}

func tokenRepeats(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("a", "n", num(0)), ""); err != nil {
		return "", err
	}
	for range 2 {
		if _, err := p.transact(ctx, p.run, p.updateIn("a", "SET n = n + :one", item{":one": num(1)})); err != nil {
			return "", err
		}
	}
	it, err := p.get(ctx, "a")
	return "", first(err, want(it, "n", "1"))
}

func tokenOfAnother(ctx context.Context, p *probe) (string, error) {
	if _, err := p.transact(ctx, p.run, p.putIn(p.of("a"), "")); err != nil {
		return "", err
	}
	_, err := p.transact(ctx, p.run, p.putIn(p.of("b"), ""))
	if _, ok := errors.AsType[*types.IdempotentParameterMismatchException](err); ok {
		return "", nil
	}
	return "", first(err, differs("it was accepted"))
}

const (
	writers = 12
	turns   = 15
)

// conflicts has transactions and single writes count on one item. Each that is refused is
// one of the two exceptions, and the item's count is that of the others.
func conflicts(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("a", "n", num(0)), ""); err != nil {
		return "", err
	}
	var made, ofTransactions, ofWrites atomic.Int64
	count := func(w int) error {
		for range turns {
			var err error
			if w%4 == 0 {
				_, err = p.update(ctx, "a", "SET n = n + :one", "", item{":one": num(1)})
			} else {
				_, err = p.transact(ctx, "", p.updateIn("a", "SET n = n + :one", item{":one": num(1)}), p.putIn(p.of(fmt.Sprint("w", w)), ""))
			}
			if err == nil {
				made.Add(1)
				continue
			}
			if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
				ofWrites.Add(1)
			} else if reasons, _ := cancelled(err); len(reasons) == 2 && aws.ToString(reasons[0].Code) == "TransactionConflict" {
				ofTransactions.Add(1)
			} else {
				return err
			}
		}
		return nil
	}
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() { errs[w] = count(w) })
	}
	wg.Wait()
	if err := first(errs...); err != nil {
		return "", err
	}
	it, err := p.get(ctx, "a")
	if err = first(err, want(it, "n", strconv.FormatInt(made.Load(), 10))); err != nil {
		return "", err
	}
	if ofTransactions.Load() == 0 || ofWrites.Load() == 0 {
		return "", differs("of %d writes of an item at once, %d transactions and %d single writes met a conflict", writers*turns, ofTransactions.Load(), ofWrites.Load())
	}
	return fmt.Sprintf("%d transactions and %d writes of %d met one", ofTransactions.Load(), ofWrites.Load(), writers*turns), nil
}

func hundredItems(ctx context.Context, p *probe) (string, error) {
	all := make([]types.TransactWriteItem, 101)
	for i := range all {
		all[i] = p.putIn(p.of(fmt.Sprint("i", i)), "")
	}
	if _, err := p.transact(ctx, "", all[:100]...); err != nil {
		return "", err
	}
	_, err1 := p.transact(ctx, "", all...)
	_, err2 := p.transact(ctx, "", all[0], all[0])
	return "", first(invalid(err1), invalid(err2))
}

const (
	maxItem        = 400 << 10
	maxTransaction = 4 << 20
)

func itemSize(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("a", "body", p.sized("a", maxItem)), ""); err != nil {
		return "", err
	}
	_, err1 := p.put(ctx, p.of("a", "body", p.sized("a", maxItem+1)), "")
	_, err2 := p.update(ctx, "a", "SET b = :one", "", item{":one": num(1)})
	return "", first(invalid(err1), invalid(err2))
}

func transactionSize(ctx context.Context, p *probe) (string, error) {
	const parts = 11
	all := make([]types.TransactWriteItem, parts)
	for i := range all {
		name := fmt.Sprint("part", i)
		all[i] = p.putIn(p.of(name, "body", p.sized(name, maxTransaction/parts+1)), "")
	}
	_, err := p.transact(ctx, "", all...)
	return "", invalid(err)
}

// units fails unless a write took so many.
func units(used *types.ConsumedCapacity, expected float64) error {
	if used == nil {
		return errors.New("the answer has no units")
	}
	if got := aws.ToFloat64(used.CapacityUnits); got != expected {
		return differs("%g units, not %g", got, expected)
	}
	return nil
}

func unitsOfWrites(ctx context.Context, p *probe) (string, error) {
	small, err1 := p.put(ctx, p.of("a", "body", p.sized("a", 1024)), "")
	large, err2 := p.put(ctx, p.of("b", "body", p.sized("b", 3600)), "")
	if err := first(err1, err2); err != nil {
		return "", err
	}
	return "", first(units(small.ConsumedCapacity, 1), units(large.ConsumedCapacity, 4))
}

func unitsOfTransactions(ctx context.Context, p *probe) (string, error) {
	out, err := p.transact(ctx, "", p.putIn(p.of("a"), ""), p.putIn(p.of("b"), ""))
	if err != nil {
		return "", err
	}
	if len(out.ConsumedCapacity) != 1 {
		return "", fmt.Errorf("the answer has units of %d tables", len(out.ConsumedCapacity))
	}
	return "", units(&out.ConsumedCapacity[0], 4)
}
