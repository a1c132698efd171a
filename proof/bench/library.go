package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/internal/base/itemsize"
)

// Library is the library's own time, without the SDK: DynamoDB's part is a stub.
type Library struct {
	Does    string `json:"does"`   // new, replay
	Answer  int    `json:"answer"` // bytes
	Objects int    `json:"allocations"`
	Bytes   int    `json:"allocated_bytes"`
	// Hot is in a loop of the same; InSitu after 2 ms of other work that evicts the caches.
	Hot    Spread `json:"hot_ns"`
	InSitu Spread `json:"in_situ_ns"`
	// Yardstick is the fixed piece of work, taken in turns with InSitu.
	Yardstick Spread `json:"yardstick_in_situ_ns"`
}

// Size is how large a record is.
type Size struct {
	Answer  int `json:"answer"`  // bytes
	Claimed int `json:"claimed"` // bytes of the item while the handler runs
	Done    int `json:"done"`
	// Smallest is the smallest item that could replay the answer: a key, a state and the body.
	Smallest int `json:"smallest"`
}

var answerSizes = []int{100, 300, 1000, 10_000}

// finished is a record as DynamoDB has it, of a request that has just run.
func finished(ctx context.Context, db *dynamotest.DB, size int) (item, error) {
	b, err := newBed(ctx, db)
	if err != nil {
		return nil, err
	}
	b.now = time.Now().Truncate(time.Millisecond)
	if _, err := b.engine().Do(ctx, request(), creates(order(size))); err != nil {
		return nil, err
	}
	all, err := b.items(ctx)
	if err != nil || len(all) != 1 {
		return nil, fmt.Errorf("%d items: %w", len(all), err)
	}
	return all[0], nil
}

func measureRecords(ctx context.Context, db *dynamotest.DB) (all []Size, _ error) {
	for _, size := range answerSizes {
		b, err := newBed(ctx, db)
		if err != nil {
			return nil, err
		}
		s := Size{Answer: size, Smallest: itemsize.Of(smallestItem(smallestPK(0), order(size)))}
		if _, err := b.engine().Do(ctx, request(), func(context.Context) (idem.Response, error) {
			var err error
			s.Claimed, err = b.atRest(ctx)
			return created(order(size)), err
		}); err != nil {
			return nil, err
		}
		if s.Done, err = b.atRest(ctx); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func measureLibrary(ctx context.Context, db *dynamotest.DB, n int) (all []Library, _ error) {
	for _, size := range answerSizes {
		done, err := finished(ctx, db, size)
		if err != nil {
			return nil, err
		}
		refused := stubAPI{refusal: &types.ConditionalCheckFailedException{Message: aws.String("The conditional request failed"), Item: done}}
		kinds := []struct {
			does string
			api  dynamo.API
			opt  func(*idem.Options)
		}{
			{"new", stubAPI{}, plain},
			{"replay", refused, plain},
		}
		for _, kind := range kinds {
			l := Library{Does: kind.does, Answer: size}
			if err := l.measure(ctx, n, kind.api, kind.opt); err != nil {
				return nil, fmt.Errorf("%s, %d bytes: %w", kind.does, size, err)
			}
			all = append(all, l)
		}
	}
	return all, nil
}

func (l *Library) measure(ctx context.Context, n int, api dynamo.API, opt func(*idem.Options)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	do, err := doOn(ctx, api, l.Answer, l.Does != "new", opt)
	if err != nil {
		return err
	}
	if l.Objects, l.Bytes, err = allocated(n, do); err != nil {
		return err
	}
	hot, err := interleaved(n, 4, nil, do)
	if err != nil {
		return err
	}
	situ, err := interleaved(max(n/4, 5), 1, elsewhere, do, yardstick)
	if err != nil {
		return err
	}
	l.Hot, l.InSitu, l.Yardstick = hot[0], situ[0], situ[1]
	return nil
}

// doOn is the same request again and again, on a store over api.
func doOn(ctx context.Context, api dynamo.API, size int, replay bool, opt func(*idem.Options)) (op, error) {
	s, err := dynamo.New(api, "bench")
	if err != nil {
		return nil, err
	}
	engine, req, fn := idem.New(s, opt, func(o *idem.Options) { o.Function = "rides" }), request(), creates(order(size))
	return func(int) error {
		res, err := engine.Do(ctx, req, fn)
		if err == nil && res.Replayed != replay {
			err = fmt.Errorf("replayed: %t", res.Replayed)
		}
		return err
	}, nil
}
