package prove

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samekey/samekey/internal/cli/prove/fault"
)

const backgroundPage = "docs/operate/background.md"

func background() []Claim {
	return []Claim{
		{
			Name: "background.completion", Text: "the worker completes a booking whose process was killed, and whose client is gone", Page: backgroundPage,
			Figure: "# s after the kill", Cost: Cost{Bookings: 2, Reads: 400 * 3 * 128}, Examine: examineCompletion,
		},
		{
			Name: "background.delivery", Text: "a job is delivered and done", Page: backgroundPage,
			Figure: "at most # s after the answer", Cost: Cost{Bookings: tries + 1, Reads: 400 * 3 * 128}, Examine: examineDelivery,
		},
	}
}

func examineCompletion(ctx context.Context, p *Place) (string, error) {
	b := newBooking("abandoned", 900)
	b.fault = fault.Fault{Kind: fault.After, Call: 2, Cell: "abandoned"}
	_, err := p.book(ctx, b)
	if dark(err) || ctx.Err() != nil {
		return "", notSeen(err)
	}
	w, done, err := p.arrive(ctx, p.patience(), func(w world) bool { e, _ := w.of(b.place); return e == complete })
	if err != nil {
		return "", notSeen(err)
	}
	killed, met := w.happened(b.fault)
	switch e, _ := w.of(b.place); {
	case !met:
		return "", notSeen(errors.New("the process was not killed"))
	case !done:
		return "", fmt.Errorf("after %s: %s", p.patience(), e.wrong())
	}
	return fmt.Sprintf("%.0f s after the kill", time.Since(killed).Seconds()), nil
}

func examineDelivery(ctx context.Context, p *Place) (string, error) {
	b := newBooking("delivered", 901)
	a, err := p.insist(ctx, b)
	if err != nil {
		return "", notSeen(err)
	}
	began := time.Now()
	w, done, err := p.arrive(ctx, p.patience(), func(w world) bool { e, _ := w.of(b.place); return e == complete })
	if err != nil {
		return "", notSeen(err)
	}
	if e, _ := w.of(b.place); !done {
		return "", fmt.Errorf("after the answer %d: %s", a.status, e.wrong())
	}
	return fmt.Sprintf("at most %.0f s after the answer", time.Since(began).Seconds()+1), nil
}
