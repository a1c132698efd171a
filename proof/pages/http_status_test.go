package pages_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/idem"
)

// status reads the status resource of a key.
func (s *stage) status(key string, edits ...func(*idem.Request)) idem.Response {
	r := idem.Request{Method: "GET", Path: "/operations/" + key, Identity: idem.Identity{Kind: "jwt", Subject: "jane"}, Header: make(http.Header)}
	for _, edit := range edits {
		edit(&r)
	}
	return s.e.ServeStatus(s.t.Context(), r)
}

// status: the status resource's answers.
func status(t *testing.T) string {
	tb := table{Head: []string{"situation", "status", "headers", "body"}}
	for _, row := range []struct {
		name string
		opt  func(*idem.Options)
		act  func(*stage) idem.Response
	}{
		{name: "an attempt runs", act: func(s *stage) idem.Response {
			var r idem.Response
			s.meanwhile(func() outcome {
				r = s.status(key)
				return outcome{}
			})
			return r
		}},
		{name: "the last attempt failed after a phase", act: func(s *stage) idem.Response {
			s.post(func(ctx context.Context) (idem.Response, error) {
				_, err := phased(ctx)
				return idem.Response{}, errors.Join(errBank, err)
			})
			return s.status(key)
		}},
		{name: "the operation is done", act: func(s *stage) idem.Response {
			s.post(created)
			return s.status(key)
		}},
		{name: "the operation is stuck", act: func(s *stage) idem.Response {
			s.post(unknown)
			return s.status(key)
		}},
		{name: "the caller is unverified", act: func(s *stage) idem.Response { return s.status(key, ofNobody) }},
		{name: "the key belongs to another verified caller", act: func(s *stage) idem.Response {
			s.post(created)
			return s.status(key, func(r *idem.Request) { r.Identity.Subject = "omar" })
		}},
		{name: "the key is unknown or freed", act: func(s *stage) idem.Response {
			s.post(failing)
			return s.status(key)
		}},
		{name: "in `ModeOff`", opt: func(o *idem.Options) { o.Mode = idem.ModeOff }, act: func(s *stage) idem.Response { return s.status(key) }},
		{name: "the request is a POST", act: func(s *stage) idem.Response {
			return s.status(key, func(r *idem.Request) { r.Method = "POST" })
		}},
	} {
		opt := func(o *idem.Options) {
			accept(o)
			if row.opt != nil {
				row.opt(o)
			}
		}
		play(t, contracts[0], opt, func(s *stage) {
			r := row.act(s)
			var h []string
			for _, name := range []string{"Allow", "Retry-After", "Location", idem.ReplayedHeader, "Idempotency-Expires"} {
				if v := r.Header.Get(name); v != "" {
					h = append(h, code(name)+" "+shortened(v))
				}
			}
			body := code(strings.TrimSpace(string(r.Body)))
			if p := codeOf(r); p != "" {
				body = fmt.Sprintf("[%s](#%s)", code(p), p)
			}
			tb.Add(row.name, statusOf(idem.Result{Response: r}), strings.Join(h, ", "), body)
		})
	}
	return tb.String()
}
