package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

const sendItems = `Send {"items": [{"id": "…", "quantity": 1}]}.`

// create creates a session.
func (a *app) create(ctx context.Context, ev request) (response, error) {
	if caller(ev) == "" {
		return unauthorized, nil
	}
	op, _ := idem.FromContext(ctx)
	s := Session{ID: "cs_" + op.ID(), Status: ready, Currency: "usd"}
	if !s.fill(ev.Body) {
		return refusal(http.StatusBadRequest, "invalid", sendItems), nil
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		tx.Write(a.put(ev, s, ""))
		return answer(http.StatusCreated, s), nil
	})
}

// update changes the items of a session.
func (a *app) update(ctx context.Context, ev request) (response, error) {
	if caller(ev) == "" {
		return unauthorized, nil
	}
	return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (response, error) {
		s, err := a.read(ctx, tx, ev)
		switch {
		case err != nil:
			return response{}, err
		case s.Status != ready:
			return refusal(http.StatusConflict, "invalid", "The session is "+s.Status+"."), nil
		case !s.fill(ev.Body):
			return refusal(http.StatusBadRequest, "invalid", sendItems), nil
		}
		tx.Write(a.put(ev, s, ""))
		return answer(http.StatusOK, s), nil
	})
}

// complete takes the payment once, whatever dies, and makes the order.
func (a *app) complete(ctx context.Context, ev request) (response, error) {
	if caller(ev) == "" {
		return unauthorized, nil
	}
	token := tokenOf(ev.Body)
	if token == "" {
		return refusal(http.StatusBadRequest, "missing", `Send {"payment_data": {"token": "…"}}.`), nil
	}

	// While another completion is in progress, the refusal is not kept: that payment may be
	// declined, and then this request completes the session.
	if op, _ := idem.FromContext(ctx); !op.Resumed() {
		r, err := a.load(ctx)
		if err != nil {
			return response{}, err
		}
		if r.Owner == caller(ev) && r.Status == inProgress {
			return refusal(http.StatusConflict, "invalid", "The session is "+r.Status+"."), nil
		}
	}

	// From here on nobody else completes, changes or cancels the session.
	s, err := idem.Atomic(ctx, "begun", func(ctx context.Context, tx *idem.Tx) (Session, error) {
		s, err := a.read(ctx, tx, ev)
		switch {
		case err != nil:
			return s, err
		case s.Status != ready:
			return s, idem.Respond(refusal(http.StatusConflict, "invalid", "The session is "+s.Status+"."))
		}
		s.Status = inProgress
		tx.Write(a.put(ev, s, ""))
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

	return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (response, error) {
		op, _ := idem.FromContext(ctx)
		done := s
		if charge == "" {
			done.Status = ready
			tx.Write(a.put(ev, done, ""))
			return refusal(http.StatusPaymentRequired, "payment_declined", "The payment was declined."), nil
		}
		done.Status, done.Order = completed, &Order{ID: "order_" + op.ID(), Session: s.ID}
		tx.Write(a.put(ev, done, charge))
		tx.Stage(idem.NewJob("order_created", *done.Order))
		return answer(http.StatusOK, done), nil
	})
}

// cancel cancels a session that is not paid.
func (a *app) cancel(ctx context.Context, ev request) (response, error) {
	if caller(ev) == "" {
		return unauthorized, nil
	}
	return idem.Finish(ctx, func(ctx context.Context, tx *idem.Tx) (response, error) {
		s, err := a.read(ctx, tx, ev)
		switch {
		case err != nil:
			return response{}, err
		case s.Status != ready:
			return refusal(http.StatusMethodNotAllowed, "invalid", "The session is "+s.Status+"."), nil
		}
		s.Status = canceled
		tx.Write(a.put(ev, s, ""))
		return answer(http.StatusOK, s), nil
	})
}

// show shows a session. It changes nothing, and needs no key.
func (a *app) show(ctx context.Context, ev request) (response, error) {
	if caller(ev) == "" {
		return unauthorized, nil
	}
	r, err := a.load(ctx)
	if err != nil {
		return response{}, err
	}
	if r.ID == "" || r.Owner != caller(ev) {
		return refusal(http.StatusNotFound, "not_found", "There is no such session."), nil
	}
	return answer(http.StatusOK, r.Session), nil
}

// load loads the session of the request's path, outside of a phase.
func (a *app) load(ctx context.Context) (r row, err error) {
	key, err := attributevalue.MarshalMap(sessionKey{lambda.PathValue(ctx, "id")})
	if err != nil {
		return r, err
	}
	out, err := a.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: &a.sessions, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return r, err
	}
	err = attributevalue.UnmarshalMap(out.Item, &r)
	return r, err
}
