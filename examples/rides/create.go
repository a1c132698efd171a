package rides

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
)

// The phases, and with them the recovery points, of a booking. The names are
// stored: a renamed phase can't be resumed.
const (
	rideCreated   = "ride_created"
	chargeCreated = "charge_created"
)

// order is a ride, with its price and the customer who pays.
type order struct {
	Ride     Ride   `json:"ride"`
	Customer string `json:"customer"`
	Amount   int    `json:"amount"` // in cents
}

// bill returns the bill for the payment provider.
func (o order) bill() Bill { return Bill{o.Customer, o.Amount, "Ride " + o.Ride.ID} }

// price returns the present price of a ride.
func (a *App) price() int {
	if a.Price > 0 {
		return a.Price
	}
	return Price
}

// create books a ride. After any failure the request may be sent again with the same
// key: it continues after the last committed phase.
func (a *App) create(ctx context.Context, ev request) (response, error) {
	user, in, refused := check(ev)
	if refused != nil {
		return *refused, nil
	}
	if err := in.raise("started"); err != nil {
		return response{}, err
	}

	// The ride, its audit record and the recovery point commit together. The bill is part
	// of the result, so every attempt sends the same bill with the same key, even if
	// prices change.
	order, err := idem.Atomic(ctx, rideCreated, func(_ context.Context, tx *idem.Tx) (order, error) {
		ride := newRide(user, in)
		tx.Write(
			dynamo.Put(a.RidesTable, ride),
			dynamo.Put(a.AuditTable, ride.created(ev.RequestContext.HTTP.SourceIP)),
		)
		return order{ride, user.Customer, a.price()}, in.raise(rideCreated)
	})
	if err != nil {
		return response{}, err
	}

	// The provider's call can't be rolled back, and may get no answer. The key is the
	// same in every attempt, so the provider charges once.
	charge, err := idem.Foreign(ctx, chargeCreated, func(ctx context.Context, tx *idem.Tx) (Charge, error) {
		if err := in.raise(chargeCreated); err != nil {
			return Charge{}, err
		}
		charge, err := a.Payments.Charge(ctx, order.bill(), tx.Key("payments"))
		switch {
		case errors.Is(err, ErrDeclined): // final: stored, and the same for every retry
			return Charge{}, idem.Respond(problem(http.StatusPaymentRequired, "Your card was declined."))
		case errors.Is(err, ErrRefused) && !tx.Repeats(): // otherwise the charge of an earlier call may have been taken
			return Charge{}, idem.Respond(problem(http.StatusBadGateway, "The payment was refused."))
		}
		return charge, err // the client is told to retry with the same key
	}, a.charging(order.bill())...)
	if err != nil {
		return response{}, err
	}

	// The payment of the ride, the job for the receipt and the answer commit together.
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		paid := order.Ride
		paid.ChargeID = charge.ID
		tx.Write(dynamo.Update(a.RidesTable, rideKey{paid.ID}, "SET charge_id = :charge", dynamo.Args{":charge": charge.ID}).
			If("attribute_exists(id)")) // without the condition, an update would make a ride that has only a charge
		tx.Stage(idem.NewJob(ReceiptJob, Receipt{RideID: paid.ID, To: paid.User, Amount: order.Amount}))
		return booked(paid), in.raise("finished")
	})
}

// lookUpWithin is the longest time that a charge can be on its way, including waits in
// proxies and paused processes. The provider lists a charge at once.
const lookUpWithin = 15 * time.Minute

// charging returns the options of the charge: how long it may be repeated with its key, and how to
// look it up later.
func (a *App) charging(bill Bill) []idem.PhaseOption {
	opts := []idem.PhaseOption{
		idem.Sends("payments", bill),
		idem.LookUp(func(ctx context.Context, call idem.Call) (Charge, idem.Found, error) {
			found, err := a.Payments.Find(ctx, call.Key)
			switch {
			case err != nil:
				return Charge{}, 0, err // not known yet: idem asks again
			case len(found) == 0:
				return Charge{}, idem.NotMade, nil
			case len(found) > 1 || found[0].Amount != bill.Amount || found[0].Customer != bill.Customer:
				return Charge{}, 0, fmt.Errorf("%w: %d charges, the first of %d cents", idem.ErrContradiction, len(found), found[0].Amount)
			}
			return found[0], idem.Made, nil
		}, lookUpWithin),
	}
	if a.Memory > 0 {
		opts = append(opts, idem.Remembers(a.Memory))
	}
	return opts
}
