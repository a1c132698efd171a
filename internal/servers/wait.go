package servers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

var errEnded = errors.New("ended early")

// WaitAnswer waits until the server at endpoint gives any HTTP answer, even a refusal.
// It returns an error after five minutes, when ctx ends, or when the channel ended is
// closed. The channel may be nil.
func WaitAnswer(ctx context.Context, name, endpoint string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	probe := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true},
		Timeout:   time.Minute,
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers(ctx, probe, endpoint) {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s %w", name, errEnded)
		case <-ctx.Done():
			return fmt.Errorf("%s doesn't answer at %s: %w", name, endpoint, ctx.Err())
		case <-tick.C:
		}
	}
}

func answers(ctx context.Context, c *http.Client, endpoint string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return false
	}
	resp, err := c.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return true
}
