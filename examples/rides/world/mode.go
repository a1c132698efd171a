package world

import (
	"context"
	"net/http"
	"time"
)

// Mode sets how the services behave. The zero value of a field is the behaviour
// without failures.
type Mode struct {
	// Charge is one of
	//	ok                charges are made
	//	decline           402, the card is declined, no charge is made
	//	error             503, no charge is made
	//	hang              no answer until the client gives up, no charge is made
	//	charge_then_drop  the charge is made, and the connection is cut before the answer is complete
	Charge string `json:"charge"`
	// Mail is ok, or error: 503, no mail is sent.
	Mail string `json:"mail"`
	// DelayMS delays each answer, in ms, after the request has had its effect.
	DelayMS int `json:"delay_ms"`
	// Times is how many requests to each service the mode affects; after them the service
	// works again. 0: until the mode is changed.
	Times int `json:"times"`
}

// Values of Mode's fields.
const (
	OK             = "ok"
	Decline        = "decline"
	Error          = "error"
	Hang           = "hang"
	ChargeThenDrop = "charge_then_drop"
)

// maxDelay is the longest DelayMS, in ms.
const maxDelay = 60_000

// modes holds the behaviours of the two services, each with its own count.
type modes struct{ charge, mail behaviour }

type behaviour struct {
	kind  string // "" is OK
	delay time.Duration
	left  int // requests left; 0 = for ever
}

func (w *World) putMode(rw http.ResponseWriter, r *http.Request) {
	m := Mode{Charge: OK, Mail: OK}
	if !decode(rw, r, &m) {
		return
	}
	switch m.Charge {
	case OK, Decline, Error, Hang, ChargeThenDrop:
	default:
		refuse(rw, http.StatusBadRequest, "invalid_request_error", "", "charge: ok, decline, error, hang or charge_then_drop")
		return
	}
	if m.Mail != OK && m.Mail != Error {
		refuse(rw, http.StatusBadRequest, "invalid_request_error", "", "mail: ok or error")
		return
	}
	if m.DelayMS < 0 || m.DelayMS > maxDelay || m.Times < 0 {
		refuse(rw, http.StatusBadRequest, "invalid_request_error", "", "delay_ms: 0 to 60000; times: not negative")
		return
	}
	w.SetMode(m)
	answer(rw, http.StatusOK, m)
}

// SetMode does what PUT /v1/mode does, for programs in the same process. It does not
// check m.
func (w *World) SetMode(m Mode) {
	delay := time.Duration(m.DelayMS) * time.Millisecond
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mode = modes{charge: behaviour{m.Charge, delay, m.Times}, mail: behaviour{m.Mail, delay, m.Times}}
}

// take returns the behaviour for the next request, and counts the request.
func (b *behaviour) take() behaviour {
	now := *b
	if b.left > 0 {
		if b.left--; b.left == 0 {
			*b = behaviour{}
		}
	}
	return now
}

// hold waits out the delay. A client that has gone needs no answer.
func (b behaviour) hold(ctx context.Context) {
	if b.delay == 0 {
		return
	}
	t := time.NewTimer(b.delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
