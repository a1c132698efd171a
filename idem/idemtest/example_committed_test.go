package idemtest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/failtest"
)

// mail is the arguments of a job.
type mail struct {
	To string `json:"to"`
}

// confirm books an order and stages its mail.
func confirm(ctx context.Context) (idem.Response, error) {
	amount, err := idem.Atomic(ctx, "priced", func(context.Context, *idem.Tx) (int, error) { return 2000, nil })
	if err != nil {
		return idem.Response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (idem.Response, error) {
		tx.Stage(idem.NewJob("send_mail", mail{"jane@example.com"}))
		return idem.Response{Status: 201, Body: fmt.Append(nil, amount)}, nil
	})
}

// The job that a handler has staged. t is a test's own.
func ExampleStaged() {
	failtest.Print(os.Stdout, func(t testing.TB) {
		store := idemtest.Watch(new(idem.MemoryStore))
		_, err := idem.New(store).Do(t.Context(), idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "7f0c", Method: "POST"}, confirm)
		fmt.Println(err)

		fmt.Println(idemtest.Staged[mail](t, store, "send_mail").To)
		idemtest.Staged[mail](t, store, "send_receipt") // fails the test
	})
	// Output:
	// <nil>
	// jane@example.com
	// 0 jobs of kind "send_receipt" are staged, want 1; staged: ["send_mail"]
}

// The phase and the answer that a handler has committed.
func ExampleCommitted() {
	failtest.Print(os.Stdout, func(t testing.TB) {
		store := idemtest.Watch(new(idem.MemoryStore))
		_, err := idem.New(store).Do(t.Context(), idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "7f0c", Method: "POST"}, confirm)
		fmt.Println(err)

		fmt.Println(idemtest.Committed[int](t, store, "priced").Result)
		final := idemtest.Finished(t, store)
		fmt.Println(final.Response.Status, final.Phases, final.Jobs[0].Kind)

		idemtest.Committed[int](t, store, "paid") // fails the test
	})
	// Output:
	// <nil>
	// 2000
	// 201 [priced] send_mail
	// phase "paid" was committed 0 times, want once; committed: ["priced"]
}

// The same request again is answered from the record.
func ExampleReplays() {
	failtest.Print(os.Stdout, func(t testing.TB) {
		engine := idem.New(new(idem.MemoryStore))
		first := idemtest.Replays(t, engine, confirm, idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "7f0c", Method: "POST"})
		fmt.Println(first.Status)

		idemtest.Replays(t, engine, func(context.Context) (idem.Response, error) {
			return idem.Response{Status: 503}, nil // isn't stored
		}, idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "81aa", Method: "POST"})
	})
	// Output:
	// 201
	// the same request again ran the handler: its answer, 503, is not stored
}

// A provider that loses an answer, declines a card, and forgets its keys.
func ExampleProvider() {
	var p idemtest.Provider
	p.Next(idemtest.Fate{LoseAnswer: true}, idemtest.Fate{}, idemtest.Fate{Refuse: 402})
	ctx := context.Background()
	charge := func(key string) {
		e, err := p.Call(ctx, "charge", key, 2000)
		fmt.Printf("charge %q, error %v\n", e.ID, err)
	}
	charge("a") // has its effect
	charge("a")
	charge("b")
	p.Forget()
	charge("a") // a second charge
	fmt.Println(len(p.Effects()), "effects")
	// Output:
	// charge "", error idemtest: no answer
	// charge "1", error <nil>
	// charge "", error idemtest: refused: 402 card_error
	// charge "2", error <nil>
	// 2 effects
}
