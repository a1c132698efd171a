package main

import (
	"context"
	"fmt"

	"github.com/samekey/samekey/internal/testkit/tap"
)

// kills kills the API's process once in each phase, for a client that retries and for a
// client that is gone. All leases end at the same time. The worker begins after the
// retries, because the worker would be faster than the clients.
func (s *story) kills(ctx context.Context) error {
	const records = "v1#rides#" // the prefix of keys in the calls of the API and the worker
	s.settled(ctx)
	if err := s.stack.sources(ctx, "Samekey.Worker", "pause"); err != nil {
		return err
	}
	var left []*booking
	var what []string
	for _, p := range []struct {
		phase string
		nth   int
		call  string
		side  tap.Side
	}{
		{"started: the key is claimed", 1, "PutItem", tap.After},
		{"ride_created: before its commit", 1, "TransactWriteItems", tap.Before},
		{"charge_created: the money is taken, and not recorded", 1, "UpdateItem", tap.Before},
		{"finished: all is done, and the client doesn't know", 2, "TransactWriteItems", tap.After},
	} {
		s.scene("SIGKILL in the phase " + p.phase + ".")
		for _, client := range []string{"its client retries", "its client has gone"} {
			b := s.book(jane)
			held := s.database.Hold(p.nth, named(p.call, records), p.side)
			first := s.inBackground(ctx, b)
			if s.reached(ctx, held) {
				s.kill(ctx, "Rides")
			}
			held.Drop()
			r := <-first
			fmt.Printf("  %s\n", r)
			s.check("SIGKILL in "+p.phase+": the client gets no answer of ours", r.status == 500 || r.status == 503, r.String())
			left, what = append(left, b), append(what, "SIGKILL in "+p.phase+"; "+client)
		}
	}
	for i := 0; i < len(left); i += 2 {
		s.scene(what[i] + ".")
		s.retry(ctx, left[i])
	}
	if err := s.stack.sources(ctx, "Samekey.Worker", "resume"); err != nil {
		return err
	}
	for i := range left {
		s.scene(what[i] + ".")
		s.whole(ctx, what[i], left[i])
	}
	return nil
}

// settled waits until the drain has acknowledged everything. Otherwise the drain's calls
// would be counted as the API's calls.
func (s *story) settled(ctx context.Context) {
	s.until(ctx, func() bool {
		var all []record
		if err := s.scan(ctx, s.stack.at.Table, &all); err != nil {
			return false
		}
		for _, r := range all {
			if len(r.Jobs) > 0 {
				return false
			}
		}
		return true
	})
}
