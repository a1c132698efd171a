package semantics

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const fresh = "attribute_not_exists(pk)"

func refusedPut(ctx context.Context, p *probe) (string, error) {
	full := p.of("a", "holder", str("first"), "ver", num(7), "jobs", record(item{"0": str("job")}))
	if _, err := p.put(ctx, full, ""); err != nil {
		return "", err
	}
	_, err := p.put(ctx, p.of("a", "holder", str("second")), fresh)
	held, err := refused(err)
	if err != nil {
		return "", err
	}
	return "", same(held, full)
}

func refusedUpdate(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("a", "holder", str("first")), ""); err != nil {
		return "", err
	}
	change := func(name string) (item, error) {
		_, err := p.update(ctx, name, "SET ver = :one", "holder = :holder", item{":holder": str("second"), ":one": num(1)})
		return refused(err)
	}
	held, err := change("a")
	if err = first(err, want(held, "holder", "first")); err != nil {
		return "", err
	}
	held, err = change("none")
	if err != nil {
		return "", err
	}
	made, err := p.get(ctx, "none")
	if len(held) > 0 || len(made) > 0 {
		return "", differs("where there was no item, the refusal has %d attributes, and %d are there", len(held), len(made))
	}
	return "", err
}

const (
	rounds = 8
	racers = 16
)

func oneWinner(ctx context.Context, p *probe) (string, error) {
	for round := range rounds {
		name, errs := fmt.Sprint("race", round), make([]error, racers)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = p.put(ctx, p.of(name, "holder", num(i)), fresh) })
		}
		wg.Wait()
		made := 0
		for _, err := range errs {
			if err == nil {
				made++
			} else if _, err := refused(err); err != nil {
				return "", err
			}
		}
		if made != 1 {
			return "", differs("of %d at once %d were made", len(errs), made)
		}
	}
	return fmt.Sprintf("%d races of %d", rounds, racers), nil
}

// holds fails unless a condition on the item is as expected.
func (p *probe) holds(ctx context.Context, name, condition string, args item, expected bool) error {
	all := item{":w": num(1)}
	maps.Copy(all, args)
	_, err := p.update(ctx, name, "SET written = :w", condition, all)
	if err != nil {
		if _, err = refused(err); err != nil {
			return err
		}
		if expected {
			return differs("%s is false", condition)
		}
		return nil
	}
	if !expected {
		return differs("%s is true", condition)
	}
	return nil
}

func absentCompares(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("a", "ver", num(1)), ""); err != nil {
		return "", err
	}
	now, freed := item{":now": num(2_000_000_000)}, item{":freed": str("freed")}
	return "", first(
		p.holds(ctx, "a", "exp_s < :now", now, false),
		p.holds(ctx, "a", "NOT exp_s < :now", now, true),
		p.holds(ctx, "a", "keep = :freed", freed, false),
		p.holds(ctx, "a", "NOT keep = :freed", freed, true),
	)
}

func pathsOfMaps(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("with", "req", record(item{"m": str("POST")})), ""); err != nil {
		return "", err
	}
	if _, err := p.put(ctx, p.of("without"), ""); err != nil {
		return "", err
	}
	return "", first(
		p.holds(ctx, "with", "attribute_exists(req.m) AND attribute_not_exists(req.o)", nil, true),
		p.holds(ctx, "with", "attribute_exists(req.o)", nil, false),
		p.holds(ctx, "without", "attribute_exists(req.m)", nil, false),
		p.holds(ctx, "without", "attribute_not_exists(req.m)", nil, true),
	)
}

func sizeCounts(ctx context.Context, p *probe) (string, error) {
	list := &types.AttributeValueMemberL{Value: []types.AttributeValue{str("a"), str("b"), str("c")}}
	if _, err := p.put(ctx, p.of("a", "jobs", record(item{"0": str("job"), "1": str("job")}), "settled", list), ""); err != nil {
		return "", err
	}
	return "", first(
		p.holds(ctx, "a", "size(jobs) = :n", item{":n": num(2)}, true),
		p.holds(ctx, "a", "size(settled) = :n", item{":n": num(3)}, true),
	)
}

func updateReadsBefore(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("a", "run_ms", num(5), "created_ms", num(1)), ""); err != nil {
		return "", err
	}
	out, err := p.update(ctx, "a", "SET run_ms = :now, doubt_ms = if_not_exists(run_ms, created_ms), tries = if_not_exists(tries, :zero) + :one", "",
		item{":now": num(9), ":zero": num(0), ":one": num(1)})
	if err != nil {
		return "", err
	}
	return "", first(want(out.Attributes, "run_ms", "9"), want(out.Attributes, "doubt_ms", "5"), want(out.Attributes, "tries", "1"))
}

func entriesApart(ctx context.Context, p *probe) (string, error) {
	if _, err := p.put(ctx, p.of("a", "jobs", record(item{"x": str("1"), "y": str("1"), "z": str("1")})), ""); err != nil {
		return "", err
	}
	out, err := p.update(ctx, "a", "SET jobs.y = :two REMOVE jobs.x, jobs.nothing", "attribute_exists(jobs)", item{":two": str("2")})
	if err != nil {
		return "", err
	}
	if err := want(out.Attributes, "jobs", "map[y:2 z:1]"); err != nil {
		return "", err
	}
	if _, err := p.put(ctx, p.of("b"), ""); err != nil {
		return "", err
	}
	_, err = p.update(ctx, "b", "SET jobs.y = :two", "", item{":two": str("2")})
	return "", invalid(err)
}

const reads = 50

func consistentReads(ctx context.Context, p *probe) (string, error) {
	for i := range reads {
		if _, err := p.put(ctx, p.of("a", "ver", num(i)), ""); err != nil {
			return "", err
		}
		it, err := p.get(ctx, "a")
		if err = first(err, want(it, "ver", strconv.Itoa(i))); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d reads", reads), nil
}
