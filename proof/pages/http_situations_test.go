package pages_test

import (
	"context"
	"net/http"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// situation is a row of docs/use/http.md, played under each contract. act returns
// what becomes of the request in question.
type situation struct {
	name   string
	opt    func(*idem.Options)
	act    func(*stage) outcome
	hidden bool // the page has no row: another row says the same
}

func accept(o *idem.Options) { o.InFlight, o.StatusURL = idem.InFlightAccept, "/operations/" }

// used is a quota that has no place left.
func used(o *idem.Options) { o.Quota = usedUp{} }

type usedUp struct{}

func (usedUp) Begin(context.Context, idem.QuotaRequest) (func(idem.QuotaUse), time.Duration, error) {
	return nil, time.Minute, nil
}

// ofNobody makes r a request of an unverified caller.
func ofNobody(r *idem.Request) { r.Identity = idem.Identity{} }

func again(s *stage) outcome {
	s.post(created)
	return s.post(created)
}

func againMeanwhile(s *stage) outcome {
	return s.meanwhile(func() outcome { return s.post(created) })
}

func againLater(s *stage) outcome {
	s.post(created)
	wait(31 * 24 * time.Hour)
	return s.post(created)
}

var situations = []situation{
	{name: "a new key", act: func(s *stage) outcome { return s.post(created) }},
	{name: "the same request again", act: again},
	{name: "the same request while the first runs", act: againMeanwhile},
	{name: "the same, with `InFlightWait`", opt: func(o *idem.Options) { o.InFlight = idem.InFlightWait }, act: againMeanwhile},
	{name: "the same, with `InFlightAccept`", opt: accept, act: againMeanwhile},
	{name: "the key with another body", act: func(s *stage) outcome {
		s.post(created)
		return s.post(created, otherBody)
	}},
	{name: "the key on another path", act: func(s *stage) outcome {
		s.post(created)
		return s.post(created, func(r *idem.Request) { r.Path = "/refunds" })
	}},
	{name: "the key with another body while the first runs", hidden: true, act: func(s *stage) outcome {
		return s.meanwhile(func() outcome { return s.post(created, otherBody) })
	}},
	{name: "the key from another verified caller", act: func(s *stage) outcome {
		s.post(created)
		return s.post(created, func(r *idem.Request) { r.Identity.Subject = "omar" })
	}},
	{name: "a request of an unverified caller", act: func(s *stage) outcome { return s.post(created, ofNobody) }},
	{name: "an unverified caller repeats a request, with `OneScope`", opt: callertest.Anybody, act: func(s *stage) outcome {
		s.post(created, ofNobody)
		return s.post(created, ofNobody)
	}},
	{name: "no key", act: func(s *stage) outcome { return s.post(created, withKey()) }},
	{name: "an invalid key", act: func(s *stage) outcome { return s.post(created, withKey("")) }},
	{name: "the same request again, after `MinKey` was raised above the key's length", hidden: true, act: func(s *stage) outcome {
		s.post(created)
		s.with(func(o *idem.Options) { o.MinKey = 100 })
		return s.post(created)
	}},
	{name: "a body that isn't valid base64", act: func(s *stage) outcome { return s.refuse(idem.ErrRequest) }},
	{name: "a body over `MaxRequest` (net/http)", act: func(s *stage) outcome { return s.refuse(idem.ErrTooLarge) }},
	{name: "a body over `MaxRequest`, with a known key", act: func(s *stage) outcome {
		s.post(created)
		return s.refuse(idem.ErrTooLarge)
	}},
	{name: "a caller that can't be identified", hidden: true, act: func(s *stage) outcome {
		return s.post(created, func(r *idem.Request) { r.Identity = idem.Identity{Kind: "lambda"} })
	}},
	{name: "too little time is left", act: func(s *stage) outcome {
		ctx, cancel := context.WithTimeout(s.t.Context(), defaults.Reserve-time.Millisecond)
		defer cancel()
		return s.postFor(ctx, created)
	}},
	{name: "the caller's quota is used up", opt: used, act: func(s *stage) outcome { return s.post(created) }},
	{name: "a known key, after the quota is used up", act: func(s *stage) outcome {
		s.post(created)
		s.with(used)
		return s.post(created)
	}},
	{name: "the table can't be reached", act: func(s *stage) outcome {
		s.store.down = store.ErrUnknown
		return s.post(created)
	}},
	{name: "the handler fails", act: func(s *stage) outcome { return s.post(failing) }},
	{name: "the same request after a failure", hidden: true, act: func(s *stage) outcome {
		s.post(failing)
		return s.post(created)
	}},
	{name: "the answer can't be stored", act: func(s *stage) outcome {
		return s.post(func(ctx context.Context) (idem.Response, error) {
			s.store.finish = idem.ErrWrite
			return created(ctx)
		})
	}},
	{name: "a corrected request, after an answer that isn't kept", act: func(s *stage) outcome {
		s.post(answering(http.StatusConflict))
		return s.post(created, otherBody)
	}},
	{name: "the same, if a second attempt gave that answer", hidden: true, act: func(s *stage) outcome {
		s.late(answering(http.StatusConflict))
		return s.post(created, otherBody)
	}},
	{name: "other requests keep changing a phase's items", act: func(s *stage) outcome {
		s.store.phase = idem.ErrConflict
		return s.post(phased)
	}},
	{name: "the lease ended, and another attempt took over but failed", act: (*stage).overtaken},
	{name: "the handler answers 409 after a committed phase", act: func(s *stage) outcome { return s.post(changesItsMind) }},
	{name: "the same request, immediately after that 503", act: func(s *stage) outcome {
		s.post(changesItsMind)
		return s.post(created)
	}},
	{name: "a call to another system has an unknown outcome", act: func(s *stage) outcome { return s.post(unknown) }},
	{name: "the same request after such a call", hidden: true, act: func(s *stage) outcome {
		s.post(unknown)
		return s.post(created)
	}},
	{name: "the same request again, after an answer over `MaxBody`", opt: func(o *idem.Options) { o.MaxBody = 4 }, act: again},
	{name: "the same request by a client that doesn't accept the answer's `Content-Encoding`", act: func(s *stage) outcome {
		compressed := func(ctx context.Context) (idem.Response, error) {
			r, err := created(ctx)
			r.Header = r.Header.Clone()
			r.Header.Set("Content-Encoding", "gzip")
			return r, err
		}
		s.post(compressed)
		return s.post(compressed)
	}},
	{name: "the same request after the key's lifetime", act: againLater},
	{name: "the record is damaged", act: func(s *stage) outcome {
		s.store.down = idem.ErrCorrupt
		return s.post(created)
	}},
	{name: "the handler begins a phase in `ModeOff`", opt: func(o *idem.Options) { o.Mode = idem.ModeOff }, act: func(s *stage) outcome {
		return s.post(func(ctx context.Context) (idem.Response, error) {
			return idem.Finish(ctx, func(ctx context.Context, _ *idem.Tx) (idem.Response, error) { return created(ctx) })
		})
	}},
	{name: "the fingerprint's secret or scheme is unknown", act: func(s *stage) outcome {
		s.with(func(o *idem.Options) { o.Fingerprint.Secrets = []idem.Secret{{ID: "1", Key: make([]byte, 32)}} })
		s.post(created)
		s.with(nil)
		return s.post(created)
	}},
}

// refuse is what an adapter does with a request that it can't read.
func (s *stage) refuse(err error) outcome {
	return outcome{Result: idem.Result{Response: s.e.Refuse(s.t.Context(), s.request(), err)}}
}
