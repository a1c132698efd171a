package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/samekey/samekey/idem"
)

// Payout is a transfer to somebody's account.
type Payout struct {
	To    string `json:"to"`
	Cents int    `json:"cents"`
}

// Paid is the transfer that the other side has booked.
type Paid struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

// Payouts makes payouts in a system without idempotency keys. Pay sends a reference, such as a
// transfer's end-to-end reference or a payment's metadata. Find lists the transfers with a
// reference, by the bank's statement or the provider's search.
type Payouts struct {
	Pay  func(ctx context.Context, reference string, p Payout) (Paid, error)
	Find func(ctx context.Context, reference string) ([]Paid, error)
}

// behind is how late a transfer may appear in the search. onTheWay is how long the call of
// a transfer may take to arrive.
const behind, onTheWay = 10 * time.Minute, 5 * time.Minute

// Make pays once.
func (b Payouts) Make(ctx context.Context, ev request) (response, error) {
	var p Payout
	if json.Unmarshal([]byte(ev.Body), &p) != nil || p.To == "" || p.Cents <= 0 {
		return response{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // the client's mistake
	}
	paid, err := idem.Foreign(ctx, "paid", func(ctx context.Context, tx *idem.Tx) (Paid, error) {
		return b.Pay(ctx, tx.Key("bank"), p)
	}, idem.NotIdempotent(), idem.Sends("bank", p), idem.LookUp(func(ctx context.Context, call idem.Call) (Paid, idem.Found, error) {
		all, err := b.Find(ctx, call.Key)
		switch {
		case err != nil:
			return Paid{}, 0, err // not known yet: idem asks again
		case len(all) == 0:
			return Paid{}, idem.NotMade, nil
		case len(all) > 1 || all[0].Cents != p.Cents:
			return Paid{}, 0, fmt.Errorf("%w: %d bookings, the first of %d cents", idem.ErrContradiction, len(all), all[0].Cents)
		}
		return all[0], idem.Made, nil
	}, behind+onTheWay))
	if err != nil {
		return response{}, err
	}
	body, err := json.Marshal(paid)
	return response{StatusCode: http.StatusCreated, Body: string(body)}, err
}
