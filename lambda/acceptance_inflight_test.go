package lambda_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// A9 and A10: what a request gets while another one with its key is at work.
// The 202 of A10 is in status_test.go; a thousand at once are in idem.

func TestA09HundredAtOnce(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		const all, early = 100, 50
		goOn := make(chan struct{})
		h, pay := counted(func(ctx context.Context, body []byte) (idem.Response, error) {
			select {
			case <-goOn:
			case <-ctx.Done(): // a second one is at work: the early ones are never all answered
			}
			return created(ctx, body)
		})
		wrapped := s.wrap(idem.New(&idem.MemoryStore{}, callertest.Anybody), h)
		payload := s.payload(t, newCall("k"))
		outs := make(chan []byte, all)
		send := func(n int) {
			for range n {
				go func() {
					out, err := wrapped.Invoke(t.Context(), payload)
					if err != nil {
						t.Errorf("Invoke: %v", err)
					}
					outs <- out
				}()
			}
		}
		send(early)
		var got [][]byte
		for range early - 1 { // all but the one that works
			got = append(got, <-outs)
		}
		close(goOn)
		send(all - early)
		for range all - early + 1 {
			got = append(got, <-outs)
		}

		executed, refused := 0, 0
		for _, out := range got {
			switch a := s.result(t, out); {
			case a.status == http.StatusConflict:
				a.refused(t, 409, "idempotency_in_flight")
				if after, err := strconv.Atoi(a.value("Retry-After")); err != nil || after < 1 {
					t.Errorf("Retry-After is %q", a.value("Retry-After"))
				}
				refused++
			case a.value(idem.ReplayedHeader) == "":
				a.accepted(t, 201, createdBody, false)
				executed++
			default:
				a.accepted(t, 201, createdBody, true)
			}
		}
		if executed != 1 || refused < early-1 {
			t.Errorf("%d executed and %d were refused, want 1 and %d or more", executed, refused, early-1)
		}
		ran(t, pay, 1)
	})
}

func TestA10WaitForTheFirst(t *testing.T) {
	t.Parallel()
	each(t, sources, func(t *testing.T, s source) {
		store := &looked{seen: make(chan struct{})}
		h, pay := counted(func(ctx context.Context, body []byte) (idem.Response, error) {
			<-store.seen // the provider hangs until somebody waits
			return created(ctx, body)
		})
		wrapped := s.wrap(idem.New(store, callertest.Anybody, func(o *idem.Options) { o.InFlight = idem.InFlightWait }), h)
		answers := make([]answer, 2)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = s.send(t, wrapped, newCall("k")) })
		}
		wg.Wait()
		first, second := answers[0], answers[1]
		if first.value(idem.ReplayedHeader) != "" {
			first, second = second, first
		}
		first.accepted(t, 201, createdBody, false)
		second.accepted(t, 201, createdBody, true)
		ran(t, pay, 1)
	})
}

// looked is a store that tells when somebody looks at a record.
type looked struct {
	idem.MemoryStore
	once sync.Once
	seen chan struct{}
}

func (l *looked) Load(ctx context.Context, pk string) (*store.Record, error) {
	defer l.once.Do(func() { close(l.seen) })
	return l.MemoryStore.Load(ctx, pk)
}
