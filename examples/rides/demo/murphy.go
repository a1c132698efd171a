package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/samekey/samekey/internal/testkit/tap"
)

// murphy plays the scenarios of "Murphy in Action" in "Implementing Stripe-like
// Idempotency Keys in Postgres", the model of Rocket Rides.
func (s *story) murphy(ctx context.Context) error {
	s.connectionBreaks(ctx)
	s.twoAtOnce(ctx)
	s.databaseGoesDown(ctx)
	s.providerIsDown(ctx)
	s.processDiesWaiting(ctx)
	s.badDeploy(ctx)
	return nil
}

func (s *story) connectionBreaks(ctx context.Context) {
	s.scene("1. The connection breaks before the request arrives, and another one before the answer does.")
	b := s.book(jane)
	s.quiet(ctx)
	s.database.Reset()
	s.front.Down(true)
	r := s.post(ctx, b)
	s.front.Down(false)
	f, err := s.find(ctx, b)
	s.check("1. connection: nothing has arrived", r.err != nil && err == nil && f.rides == 0 && len(s.database.Calls()) == 0, f.String())
	held := s.front.Hold(1, nil, tap.After)
	lost := s.inBackground(ctx, b)
	if s.reached(ctx, held) {
		held.Drop()
	}
	r = <-lost
	fmt.Printf("  %s\n", r)
	s.check("1. connection: the answer is lost", r.err != nil, r.String())
	s.check("1. connection: the retry gets it", s.retry(ctx, b).replayed(), "it is no replay")
	s.whole(ctx, "1. connection", b)
}

func (s *story) twoAtOnce(ctx context.Context) {
	s.scene("2. Two requests with one key at once.")
	b := s.book(jane)
	s.world(ctx, map[string]any{"charge": "ok", "delay_ms": 700, "times": 1})
	other := *b
	one, two := s.inBackground(ctx, b), s.inBackground(ctx, &other)
	replies := []*reply{<-one, <-two}
	s.world(ctx, nil) // mails would be late, too
	slices.SortFunc(replies, func(a, b *reply) int { return a.status - b.status })
	for _, r := range replies {
		fmt.Printf("  %s\n", r)
	}
	s.check("2. two at once: one is made, the other told to come back", replies[0].status == 201 && !replies[0].replayed() &&
		replies[1].status == 409 && replies[1].header.Get("Retry-After") != "", fmt.Sprint(replies[0].status, replies[1].status))
	b.final = replies[0]
	s.whole(ctx, "2. two at once", b)
}

func (s *story) databaseGoesDown(ctx context.Context) {
	s.scene("3. The database goes down when the key has been created.")
	b := s.book(jane)
	s.quiet(ctx)
	held := s.database.Hold(1, named("PutItem", "v1#rides#"), tap.After)
	first := s.inBackground(ctx, b)
	if s.reached(ctx, held) {
		s.database.Down(true)
	}
	held.GoOn()
	r := <-first
	fmt.Printf("  %s\n", r)
	s.check("3. database: the request fails", r.status >= 500, r.String())
	r = s.post(ctx, b)
	s.check("3. database: so does a retry, as long as it is down", r.status == 503, r.String())
	s.database.Down(false)
	s.retry(ctx, b)
	s.whole(ctx, "3. database", b)
}

func (s *story) providerIsDown(ctx context.Context) {
	s.scene("4. The payment provider is down.")
	b := s.book(jane)
	s.world(ctx, map[string]any{"charge": "error", "times": 2})
	for range 2 {
		r := s.post(ctx, b)
		s.check("4. provider: the client is told to retry with the same key", r.status == 500 && strings.Contains(string(r.body), "Retry with the same key"), r.String())
	}
	s.retry(ctx, b)
	s.whole(ctx, "4. provider", b)
}

func (s *story) processDiesWaiting(ctx context.Context) {
	s.scene("5. The process dies while it waits for the provider, who has taken the money.")
	b := s.book(jane)
	before, _ := s.charges(ctx)
	s.world(ctx, map[string]any{"charge": "ok", "delay_ms": 20_000, "times": 1})
	first := s.inBackground(ctx, b)
	var charges []charge
	s.until(ctx, func() bool { charges, _ = s.charges(ctx); return len(charges) > len(before) })
	s.kill(ctx, "Rides")
	s.world(ctx, nil) // mails would be late, too
	r := <-first
	fmt.Printf("  %s\n", r)
	s.check("5. process: the request fails", r.status >= 500, r.String())
	s.retry(ctx, b)
	after, _ := s.charges(ctx)
	s.check("5. process: the provider was asked twice with one key, and charged once",
		len(after) == len(before)+1 && after[len(after)-1].Calls == 2, fmt.Sprint(after))
	s.whole(ctx, "5. process", b)
}

func (s *story) badDeploy(ctx context.Context) {
	s.scene("6. A bad deploy fails all requests midway (raise_error stands for the bug). One client retries, one has gone.")
	retries, gone := s.book(jane), s.book(omar)
	for _, b := range []*booking{retries, gone} {
		b.raise = "charge_created"
		r := s.post(ctx, b)
		s.check("6. bad deploy: 500", r.status == 500, r.String())
		b.raise = "" // the bug is mended
	}
	s.retry(ctx, retries)
	s.whole(ctx, "6. bad deploy, its client retries", retries)
	fmt.Println("  waiting for the completer …")
	s.whole(ctx, "6. bad deploy, its client has gone", gone)
}

// inBackground sends a booking from another goroutine.
func (s *story) inBackground(ctx context.Context, b *booking) <-chan *reply {
	done := make(chan *reply, 1)
	go func() { done <- s.send(ctx, b) }()
	return done
}

// reached waits until a call is held.
func (s *story) reached(ctx context.Context, h *tap.Held) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-h.Reached():
		return true
	case <-ctx.Done():
		s.check("a call can be held", false, "it never came")
		return false
	}
}

// named matches calls by their name, and by a part of their content.
func named(name, part string) func(tap.Call) bool {
	return func(c tap.Call) bool { return c.Name == name && strings.Contains(c.Body, part) }
}
