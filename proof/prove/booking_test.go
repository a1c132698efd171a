package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// The first booking waits until the API answers, and says what it answered last.
func TestWarm(t *testing.T) {
	t.Parallel()
	for late, answers := range map[time.Duration]bool{0: true, 20 * time.Second: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			m := newInMemory()
			p := m.place()
			p.meter.begin(warming)
			m.concurrency["booker"] = 0
			time.AfterFunc(late, func() {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.concurrency["booker"] = 10
			})
			synctest.Wait()
			err := p.warm(t.Context())
			if (err == nil) != answers || err != nil && !strings.Contains(err.Error(), "the last one is 503") || answers != (len(m.items["rides"]) == 1) {
				t.Errorf("an API that answers after %s: %v", late, err)
			}
		})
	}
}

// script are an API's answers, one after the other: statuses, or one of these.
type script []int

const (
	broken = -iota // the line breaks
	half           // in the answer
	hangs
)

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	next := (*s)[0]
	*s = (*s)[1:]
	resp := &http.Response{StatusCode: next, Body: io.NopCloser(strings.NewReader("{}"))}
	switch next {
	case broken:
		return nil, errors.New("connection reset by peer")
	case half:
		resp.StatusCode, resp.Body = http.StatusCreated, io.NopCloser(iotest.ErrReader(errors.New("half an answer")))
	case hangs:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return resp, nil
}

// A client tries again, later each time, until it has an answer for good.
func TestInsist(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		answers script
		warms   bool
		want    string
	}{
		{script{201}, false, "201 <nil>, 0s, 0 left"},
		{script{409, 429, 500, 201, 201}, false, "201 <nil>, 6s, 1 left"},
		{script{422, 201}, false, "422 <nil>, 0s, 1 left"},
		{script{broken, half, 404}, false, "404 <nil>, 3s, 0 left"},
		{script{hangs, 201}, false, "201 <nil>, 36s, 0 left"},
		{script{500, 500, 500, 500, 500, 500, 500, 500, 500, 201}, false, "500 context deadline exceeded, 40s, 1 left"},
		{script{half, 500, broken, 201}, true, "0 <nil>, 6s, 0 left"},
		{script{500, 500, 500, 500, 500, 500, 500, 500, 500, 201}, true, "0 context deadline exceeded, 40s, 1 left"},
	} {
		synctest.Test(t, func(t *testing.T) {
			answers := test.answers
			p := &Place{API: "https://api", HTTP: &http.Client{Transport: &answers}, Timeout: 6 * time.Second, meter: &meter{most: Cost{Bookings: tries}}}
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			var a answer
			var err error
			if test.warms {
				err = p.warm(ctx)
			} else {
				a, err = p.insist(ctx, newBooking("insists", 1))
			}
			if got := fmt.Sprintf("%d %v, %s, %d left", a.status, err, time.Since(began), len(answers)); got != test.want {
				t.Errorf("%v: %s", test.answers, got)
			}
		})
	}
}

// body is that of an answer.
type body struct {
	io.Reader
	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

func (b *body) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusCreated, Body: b}, nil
}

// Of an answer a megabyte is read, and it is closed. What is no URL is no place for a booking.
func TestBook(t *testing.T) {
	t.Parallel()
	b := &body{Reader: strings.NewReader(strings.Repeat("x", 1<<20+1))}
	p := &Place{API: "https://api", HTTP: &http.Client{Transport: b}, meter: &meter{most: Cost{Bookings: 1}}}
	if a, err := p.book(t.Context(), booking{}); err != nil || len(a.body) != 1<<20 || !b.closed {
		t.Errorf("%d bytes, closed: %t, %v", len(a.body), b.closed, err)
	}
	if _, err := p.book(t.Context(), booking{url: "https://%"}); err == nil || dark(err) {
		t.Error(err)
	}
}
