package idem_test

import (
	"context"
	"fmt"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// Bank is a system without idempotency keys, which stores a reference with each transfer.
type Bank interface {
	Pay(ctx context.Context, reference string, cents int) (Transfer, error)
	Find(ctx context.Context, reference string) ([]Transfer, error)
}

// Transfer is what the bank knows of a transfer.
type Transfer struct {
	ID    string
	Cents int
}

func transfer(ctx context.Context, bank Bank, cents int) (Transfer, error) {
	return idem.Foreign(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (Transfer, error) {
		return bank.Pay(ctx, tx.Key("bank"), cents)
	}, idem.NotIdempotent(), idem.Sends("bank", cents),
		idem.LookUp(func(ctx context.Context, call idem.Call) (Transfer, idem.Found, error) {
			found, err := bank.Find(ctx, call.Key)
			switch {
			case err != nil:
				return Transfer{}, 0, err // not known yet
			case len(found) == 0:
				return Transfer{}, idem.NotMade, nil
			case len(found) > 1 || found[0].Cents != cents:
				return Transfer{}, 0, fmt.Errorf("%w: %d transfers, the first of %d", idem.ErrContradiction, len(found), found[0].Cents)
			}
			return found[0], idem.Made, nil
		}, 20*time.Minute))
}

// The answer of the bank is lost. The retry doesn't pay again: it asks the bank.
func ExampleLookUp() {
	bank := &lossyBank{}
	bank.provider.Next(idemtest.Fate{LoseAnswer: true})
	engine := idem.New(new(idem.MemoryStore), callertest.Anybody)
	for range 2 {
		res, err := engine.Do(context.Background(), idem.Request{Key: "8e03978e-40d5"}, func(ctx context.Context) (idem.Response, error) {
			t, err := transfer(ctx, bank, 500)
			return idem.Response{Status: 201, Body: []byte("transfer " + t.ID)}, err
		})
		fmt.Printf("%s, %v\n", res.Body, err)
	}
	fmt.Println(len(bank.provider.Effects()), "transfer")
	// Output:
	// , idemtest: no answer
	// transfer 1, <nil>
	// 1 transfer
}

// lossyBank is a bank on a provider of package idemtest.
type lossyBank struct{ provider idemtest.Provider }

func (b *lossyBank) Pay(ctx context.Context, reference string, cents int) (Transfer, error) {
	e, err := b.provider.Call(ctx, "pay", reference, cents)
	return Transfer{e.ID, cents}, err
}

func (b *lossyBank) Find(ctx context.Context, reference string) (all []Transfer, err error) {
	found, err := b.provider.LookUp(ctx, reference)
	for _, e := range found {
		all = append(all, Transfer{e.ID, 500})
	}
	return all, err
}
