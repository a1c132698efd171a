package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
)

// Invitations is a job of the fan-out: some of the guests.
type Invitations struct {
	To []string `json:"to"`
}

// At most 50 jobs may wait in a record.
const (
	guestsInJob = 20
	maxGuests   = 50 * guestsInJob
)

// Invite stages the invitations of all guests in one commit: all of them, or none.
func Invite(ctx context.Context, ev request) (response, error) {
	var guests []string
	if json.Unmarshal([]byte(ev.Body), &guests) != nil || len(guests) == 0 || len(guests) > maxGuests {
		return response{StatusCode: http.StatusBadRequest}, nil //nolint:nilerr // the client's mistake
	}
	return idem.Finish(ctx, func(_ context.Context, tx *idem.Tx) (response, error) {
		for some := range slices.Chunk(guests, guestsInJob) {
			tx.Stage(idem.NewJob("invite", Invitations{some}))
		}
		return response{StatusCode: http.StatusAccepted, Body: strconv.Itoa(len(guests))}, nil
	})
}

// Mail sends a mail under a key.
type Mail func(ctx context.Context, key, to string) error

// OnInvitations sends the mails of a job. Each mail is a phase: a job that fails goes on
// with the guest whose mail failed.
func (send Mail) OnInvitations(ctx context.Context, msg events.SQSMessage) error {
	var job Invitations
	if err := json.Unmarshal([]byte(msg.Body), &job); err != nil {
		return err
	}
	for i, to := range job.To {
		_, err := idem.Foreign(ctx, fmt.Sprintf("mail/%d", i), func(ctx context.Context, tx *idem.Tx) (bool, error) {
			return true, send(ctx, tx.Key("mails", to), to)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
