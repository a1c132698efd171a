package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// routes are the operations of a checkout session. All operations but show have a key.
func (a *app) routes(engine *idem.Engine) *lambda.Router[request, response] {
	router := lambda.NewRouter(lambda.HTTPAPI)
	router.Keyed("POST /checkout_sessions", engine, identified(a.create))
	router.Keyed("POST /checkout_sessions/{id}", engine, identified(a.unlessBusy(a.update)))
	router.Keyed("POST /checkout_sessions/{id}/complete", engine, identified(a.unlessBusy(a.complete)))
	router.Keyed("POST /checkout_sessions/{id}/cancel", engine, identified(a.unlessBusy(a.cancel)))
	router.Route("GET /checkout_sessions/{id}", identified(a.show))
	return router
}

// create creates a session.
func (a *app) create(ctx context.Context, ev request, caller string) (response, error) {
	op, _ := idem.FromContext(ctx)
	s := Session{ID: "cs_" + op.ID(), Status: ready, Currency: "usd"}
	if !s.fill(ev.Body) {
		return noItems, nil
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Write(a.put(row{Session: s, Owner: caller}))
		return answer(http.StatusCreated, s), nil
	})
}

// update changes the items of a session.
func (a *app) update(ctx context.Context, ev request, caller string) (response, error) {
	return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (response, error) {
		s, err := a.read(ctx, tx, caller, http.StatusConflict)
		if err != nil {
			return response{}, err
		}
		if !s.fill(ev.Body) {
			return noItems, nil
		}
		tx.Write(a.put(row{Session: s, Owner: caller}))
		return answer(http.StatusOK, s), nil
	})
}

// cancel cancels a session that is not paid.
func (a *app) cancel(ctx context.Context, _ request, caller string) (response, error) {
	return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (response, error) {
		s, err := a.read(ctx, tx, caller, http.StatusMethodNotAllowed)
		if err != nil {
			return response{}, err
		}
		s.Status = canceled
		tx.Write(a.put(row{Session: s, Owner: caller}))
		return answer(http.StatusOK, s), nil
	})
}

// complete takes the payment once, even if processes die, and makes the order.
func (a *app) complete(ctx context.Context, ev request, caller string) (response, error) {
	token := tokenOf(ev.Body)
	if token == "" {
		return refusal(http.StatusBadRequest, "missing", `Send {"payment_data": {"token": "…"}}.`), nil
	}
	op, _ := idem.FromContext(ctx)

	// After this phase no other request completes, changes or cancels the session.
	s, err := idem.Atomic(ctx, "begun", func(ctx context.Context, tx *idem.Tx) (Session, error) {
		s, err := a.read(ctx, tx, caller, http.StatusConflict)
		if err != nil {
			return s, err
		}
		s.Status = inProgress
		tx.Write(a.put(row{Session: s, Owner: caller, Completion: op.ID()}))
		return s, nil
	})
	if err != nil {
		return response{}, err
	}

	// "" is a declined payment.
	charge, err := idem.Foreign(ctx, "charged", func(ctx context.Context, tx *idem.Tx) (string, error) {
		charge, err := a.payments.charge(ctx, tx.Key("payments"), token, s.Totals[0].Amount)
		if errors.Is(err, errDeclined) {
			return "", nil
		}
		return charge, err
	})
	if err != nil {
		return response{}, err
	}

	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		done := s
		if charge == "" {
			done.Status = ready
			tx.Write(a.put(row{Session: done, Owner: caller}))
			return refusal(http.StatusPaymentRequired, "payment_declined", "The payment was declined."), nil
		}
		done.Status, done.Order = completed, &Order{ID: "order_" + op.ID(), Session: s.ID}
		tx.Write(a.put(row{Session: done, Owner: caller, Charge: charge}))
		tx.Stage(idem.NewJob("order_created", *done.Order))
		return answer(http.StatusOK, done), nil
	})
}

// show shows a session. It changes nothing, and needs no key.
func (a *app) show(ctx context.Context, _ request, caller string) (response, error) {
	r, err := a.look(ctx)
	switch {
	case err != nil:
		return response{}, err
	case r.Owner != caller:
		return noSession, nil
	}
	return answer(http.StatusOK, r.Session), nil
}
