package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"
)

// backOff returns the wait before retry n (from 1):
//
//	sleep  = min(initial * 2^(n-1), most)
//	jitter = random(sleep/2, sleep)
//	wait   = max(jitter, initial)
func backOff(n int, initial, most time.Duration) time.Duration {
	sleep := initial
	for range n - 1 {
		sleep = 2 * min(sleep, most/2) // never beyond most
	}
	jitter := sleep/2 + rand.N(sleep-sleep/2+1)
	return max(jitter, initial)
}

// spread lengthens a wait by a random time shorter than initial. A server may have told
// many clients to wait equally long: without spread, they would all return at the same
// moment.
func spread(wait, initial time.Duration) time.Duration { return wait + rand.N(initial) }

// pause waits for the duration d. If req is cancelled earlier, pause returns the reason at
// once.
func pause(req *http.Request, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-req.Context().Done():
	case <-req.Cancel: //nolint:staticcheck // deprecated, but http.Client.Timeout uses it
	}
	return cancelled(req)
}

// cancelled returns the reason if req is cancelled, otherwise nil.
func cancelled(req *http.Request) error {
	if err := req.Context().Err(); err != nil {
		return context.Cause(req.Context())
	}
	select {
	case <-req.Cancel: //nolint:staticcheck // as above
		return context.Canceled
	default:
		return nil
	}
}
