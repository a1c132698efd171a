package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// client opens a connection for each request: if a reused connection breaks, net/http
// itself repeats a request with a key.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 40 * time.Second}

// booking is a client's request for a ride.
type booking struct {
	user, key string
	lat       int    // where it begins: no two bookings begin at the same place
	raise     string // the recovery point before which the request fails
	final     *reply // the 201 that the client has seen
}

// book makes a new booking.
func (s *story) book(user string) *booking {
	s.booked++
	return &booking{user: user, key: rand.Text(), lat: s.booked}
}

func (b *booking) body() string {
	raise := ""
	if b.raise != "" {
		raise = `,"raise_error":"` + b.raise + `"`
	}
	return fmt.Sprintf(`{"origin_lat":%d,"origin_lon":-122.4,"target_lat":37.8,"target_lon":-122.3%s}`, b.lat, raise)
}

// reply is a client's answer.
type reply struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (r *reply) replayed() bool { return r.header.Get("Idempotent-Replayed") == "true" }

func (r *reply) same(other *reply) bool {
	return r.err == nil && other != nil && r.status == other.status && bytes.Equal(r.body, other.body)
}

// retryAfter is how long to wait for the next try.
func (r *reply) retryAfter() time.Duration {
	seconds, err := strconv.Atoi(r.header.Get("Retry-After"))
	if err != nil {
		return 100 * time.Millisecond
	}
	return time.Duration(seconds) * time.Second
}

func (r *reply) String() string {
	if r.err != nil {
		return "no answer: " + r.err.Error()
	}
	body := string(bytes.TrimSpace(r.body))
	if len(body) > 110 {
		body = body[:100] + " …"
	}
	lines := []string{fmt.Sprintf("%d %s", r.status, body)}
	for _, name := range []string{"Idempotent-Replayed", "Retry-After"} {
		if v := r.header.Get(name); v != "" {
			lines = append(lines, name+": "+v)
		}
	}
	return strings.Join(lines, "\n      ")
}

// post sends a booking, and shows what comes back.
func (s *story) post(ctx context.Context, b *booking) *reply {
	r := s.send(ctx, b)
	fmt.Printf("  %s\n", r)
	return r
}

func (s *story) send(ctx context.Context, b *booking) *reply {
	return s.sendBody(ctx, b, b.body())
}

func (s *story) sendBody(ctx context.Context, b *booking, body string) *reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.stack.api+"/rides", bytes.NewReader([]byte(body)))
	if err != nil {
		return &reply{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+b.user)
	req.Header.Set("Idempotency-Key", b.key)
	r := &reply{}
	resp, err := client.Do(req)
	if err != nil {
		return &reply{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	r.status, r.header = resp.StatusCode, resp.Header
	if r.body, r.err = io.ReadAll(resp.Body); r.err == nil && r.status == http.StatusCreated && b.final == nil {
		b.final = r
	}
	return r
}

// patience limits each wait of the demo.
const patience = 30 * time.Second

// retry sends a booking until the answer is final, as a client does: with the same
// key, and after the wait that each answer asks for.
func (s *story) retry(ctx context.Context, b *booking) *reply {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r := s.post(ctx, b)
		if r.err == nil && r.status < http.StatusInternalServerError && r.status != http.StatusConflict {
			return r
		}
		if !sleep(ctx, r.retryAfter()) {
			return r
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// call calls a service of the stack.
func call(ctx context.Context, method, url string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, url, resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
