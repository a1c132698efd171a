package recipes

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

// Trip is a flight and a hotel.
type Trip struct {
	Flight string `json:"flight"`
	Hotel  string `json:"hotel"`
}

// Cancellation is a job: it takes one reservation back.
type Cancellation struct {
	Of string `json:"of"`
	ID string `json:"id"`
}

// Travel reserves and cancels under a key. A refusal is an empty id and no error.
type Travel struct {
	Reserve func(ctx context.Context, key, what, name string) (id string, err error)
	Cancel  func(ctx context.Context, key, what, id string) error
}

// Book reserves a flight and a hotel. If the hotel is refused, a job takes the flight
// back.
func (p Travel) Book(ctx context.Context, ev request) (response, error) {
	var trip Trip
	if json.Unmarshal([]byte(ev.Body), &trip) != nil || trip.Flight == "" || trip.Hotel == "" {
		return response{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // the client's mistake
	}
	// A refusal is a result, "", and not an error: the last phase reads it.
	flight, err := idem.Foreign(ctx, "flight", func(ctx context.Context, tx *idem.Tx) (string, error) {
		return p.Reserve(ctx, tx.Key("airline"), "flight", trip.Flight)
	})
	if err != nil { // not known: a retry calls again under the same key
		return response{}, err
	}
	hotel, err := idem.Foreign(ctx, "hotel", func(ctx context.Context, tx *idem.Tx) (string, error) {
		if flight == "" {
			return "", nil
		}
		return p.Reserve(ctx, tx.Key("hotel"), "hotel", trip.Hotel)
	})
	if err != nil {
		return response{}, err
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		if flight != "" && hotel != "" {
			return response{StatusCode: http.StatusCreated}, nil
		}
		if flight != "" { // the flight's phase is recorded, so a job takes the flight back
			tx.Stage(idem.NewJob("cancel", Cancellation{"flight", flight}))
		}
		return response{StatusCode: http.StatusConflict}, nil
	})
}

// OnCancellation takes a reservation back. The job is delivered again until it
// succeeds.
func (p Travel) OnCancellation(ctx context.Context, msg events.SQSMessage) error {
	var job Cancellation
	if err := json.Unmarshal([]byte(msg.Body), &job); err != nil {
		return err
	}
	_, err := idem.Foreign(ctx, "cancelled", func(ctx context.Context, tx *idem.Tx) (bool, error) {
		return true, p.Cancel(ctx, tx.Key("cancellations"), job.Of, job.ID)
	})
	return err
}
