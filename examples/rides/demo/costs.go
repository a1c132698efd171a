package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// cost is the number of DynamoDB calls of a path.
type cost struct {
	what string
	ops  map[string]int
}

func (c cost) total() (n int) {
	for _, times := range c.ops {
		n += times
	}
	return n
}

func (c cost) list() string {
	var parts []string
	for _, op := range []string{"PutItem", "UpdateItem", "GetItem", "TransactWriteItems"} {
		if n := c.ops[op]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, op))
		}
	}
	return strings.Join(parts, ", ")
}

// count counts the calls of do, and checks their number.
func (s *story) count(what string, want map[string]int, do func()) {
	s.database.Reset()
	do()
	c := cost{what: what, ops: make(map[string]int)}
	for _, call := range s.database.Calls() {
		c.ops[call.Name]++
	}
	fmt.Printf("  DynamoDB calls: %d  %s\n", c.total(), c.list())
	s.costs = append(s.costs, c)
	s.check(fmt.Sprintf("%s: calls of DynamoDB: %d", what, cost{ops: want}.total()), maps.Equal(c.ops, want), c.list())
}

type ops = map[string]int

// alone pauses everything except the API while do counts calls.
func (s *story) alone(ctx context.Context, do func()) error {
	for _, name := range []string{"Samekey.Worker", "Receipts"} {
		if err := s.stack.sources(ctx, name, "pause"); err != nil {
			return err
		}
		defer func() { _ = s.stack.sources(ctx, name, "resume") }() // later scenes need the source
	}
	do()
	return nil
}

// costsOfAll counts what each path costs.
func (s *story) costsOfAll(ctx context.Context) error {
	b := s.book(jane)
	err := s.alone(ctx, func() {
		s.scene("A new ride.")
		s.costing(ctx, "a new ride", ops{"PutItem": 1, "UpdateItem": 1, "TransactWriteItems": 2}, b, 201, false)
		s.scene("The same request again: the stored answer, byte for byte.")
		s.costing(ctx, "a replay", ops{"PutItem": 1}, b, 201, true)
		s.scene("The same key for another ride: refused.")
		other := &booking{user: jane, key: b.key, lat: 90}
		s.costing(ctx, "another request under the key", ops{"PutItem": 1}, other, 422, false)
		s.scene("A ride from nowhere: refused before its key is looked at.")
		s.count("a request that is no booking", ops{}, func() {
			r := s.sendBody(ctx, s.book(jane), `{"origin_lat":91}`)
			fmt.Printf("  %s\n", r)
			s.check("a request that is no booking: 422", r.status == 422, r.String())
		})
	})
	if err != nil {
		return err
	}

	s.scene("The receipt: from the stream to the queue, and to the mail service.")
	s.count("its receipt, acknowledged by the drain and mailed once", ops{"PutItem": 1, "UpdateItem": 2}, func() {
		mailed := s.until(ctx, func() bool { f, err := s.find(ctx, b); return err == nil && f.receipts > 0 })
		s.check("its receipt: mailed, and nothing left to do", mailed && s.quiet(ctx), "there is")
	})
	s.whole(ctx, "a new ride", b)

	s.scene("The card is declined: that is final, and stays so when it would be taken.")
	declined := s.book(jane)
	s.world(ctx, map[string]any{"charge": "decline", "times": 1})
	s.costing(ctx, "a declined card", ops{"PutItem": 1, "UpdateItem": 1, "TransactWriteItems": 1}, declined, 402, false)
	s.costing(ctx, "the replay of that", ops{"PutItem": 1}, declined, 402, true)
	return nil
}

// costing posts a booking, and checks the answer and the number of calls.
func (s *story) costing(ctx context.Context, what string, want ops, b *booking, status int, replay bool) {
	s.count(what, want, func() {
		r := s.post(ctx, b)
		answer := strconv.Itoa(status)
		if replay {
			answer += ", marked as a replay"
		}
		s.check(what+": "+answer, r.err == nil && r.status == status && r.replayed() == replay, r.String())
	})
}
