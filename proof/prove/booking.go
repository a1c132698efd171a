package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/samekey/samekey/proof/prove/fault"
)

// Users of Rocket Rides.
const (
	jane = "jane@example.com"
	omar = "omar@example.com"
)

// booking is a ride under a key. Its place tells it from the others: it is in the ride, in
// the audit record and, by the ride's id, in the charge and the mail.
type booking struct {
	key   string
	place int
	fault fault.Fault
	url   string // "": the API's
	route string // "": that of Rocket Rides
}

func newBooking(name string, place int) booking {
	return booking{key: "samekey-prove-" + name + "-0123456789abcdef", place: place}
}

// latitude of a booking's origin.
func latitude(place int) float64 { return float64(place) / 100 }

func bodyAt(place int) []byte {
	return fmt.Appendf(nil, `{"origin_lat":%v,"origin_lon":1,"target_lat":2,"target_lon":3}`, latitude(place))
}

// answer is an answer of the API.
type answer struct {
	status int
	body   string
}

// counted is the transport of requests to the API, which counts them.
func (p *Place) counted() http.RoundTripper { return counting{p} }

type counting struct{ place *Place }

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := c.place.meter.add(Cost{Bookings: 1}); err != nil {
		return nil, err
	}
	return c.place.HTTP.Transport.RoundTrip(r)
}

var errNoAPI = errors.New("the stand-in doesn't serve the API at its URL")

// book sends a booking once.
func (p *Place) book(ctx context.Context, b booking) (answer, error) {
	url := cmp.Or(b.url, p.API)
	if url == "" {
		return answer{}, notSeen(errNoAPI)
	}
	ctx, cancel := context.WithTimeout(ctx, 35*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+cmp.Or(b.route, "/rides"), bytes.NewReader(bodyAt(b.place)))
	if err != nil {
		return answer{}, err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + jane}, "Content-Type": {"application/json"}, "Idempotency-Key": {b.key}}
	if b.fault != (fault.Fault{}) {
		req.Header.Set(fault.Header, b.fault.String())
	}
	resp, err := p.counted().RoundTrip(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return answer{resp.StatusCode, string(body)}, err
}

// tries are the most requests of a client that retries.
const tries = 12

// insist is a client that retries, with its key, until it is answered for good. Only the
// first request meets the booking's fault.
func (p *Place) insist(ctx context.Context, b booking) (a answer, err error) {
	for try := range tries {
		a, err = p.book(ctx, b)
		if dark(err) || err == nil && a.status < 500 && a.status != http.StatusConflict && a.status != http.StatusTooManyRequests {
			return a, err
		}
		b.fault = fault.Fault{}
		if err := sleep(ctx, time.Duration(try+1)*p.Timeout/6); err != nil {
			return a, err
		}
	}
	return a, errors.Join(err, fmt.Errorf("no answer after %d requests, the last one is %d: %.200s", tries, a.status, a.body))
}

// warm books a ride until the API does: routes and permissions are everywhere only a while after the stack is made.
func (p *Place) warm(ctx context.Context) (err error) {
	for try := range tries {
		var a answer
		if a, err = p.book(ctx, newBooking("first", 899)); err == nil && a.status == http.StatusCreated {
			return nil
		}
		err = cmp.Or(err, fmt.Errorf("the last one is %d: %.200s", a.status, a.body))
		if late := sleep(ctx, time.Duration(try+1)*p.Timeout/6); late != nil {
			return late
		}
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
