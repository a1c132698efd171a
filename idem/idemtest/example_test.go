package idemtest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
)

func charge(context.Context) (idem.Response, error) {
	fmt.Println("charged")
	return idem.Response{Status: 201, Body: []byte("paid")}, nil
}

// The answer to the first claim is lost. The engine finds out that the key is
// its own, and the handler runs once.
func ExampleFaulty() {
	st := idemtest.Faulty(new(idem.MemoryStore),
		idemtest.At("Claim", 1, idemtest.Fault{Err: store.ErrUnknown, Applied: true}))
	engine := idem.New(st)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	for range 2 {
		res, err := engine.Do(ctx, idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "7f0c", Method: "POST"}, charge)
		fmt.Printf("%s, replayed %t, error %v\n", res.Body, res.Replayed, err)
	}
	fmt.Println(st.Calls(), "calls")
	// Output:
	// charged
	// paid, replayed false, error <nil>
	// paid, replayed true, error <nil>
	// 4 calls
}

// The process dies before the answer is stored. A retry waits for the end of
// the lease, which the clock brings about at once.
func ExampleCrashAt() {
	clock := idemtest.NewClock()
	at := func(o *idem.Options) { o.Now = clock.Now }
	store := new(idem.MemoryStore)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	request := idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}, Key: "7f0c", Method: "POST"}
	dies := idem.New(idemtest.Faulty(store, idemtest.CrashAt(2, false)), at)
	_, _ = dies.Do(ctx, request, charge) // nobody hears the answer

	lives := idem.New(store, at)
	_, err := lives.Do(ctx, request, charge)
	fmt.Println(err != nil)
	clock.Advance(2 * time.Minute)
	_, err = lives.Do(ctx, request, charge)
	fmt.Println(err)
	// Output:
	// charged
	// true
	// charged
	// <nil>
}
