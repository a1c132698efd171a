package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/emf"
	"github.com/samekey/samekey/lambda/metrics"
)

// booked commits a phase with this name, and ends with err.
func (d *desk) booked(t *testing.T, name string, err error) {
	t.Helper()
	_, _ = d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) { // the caller looks at the record
		_, perr := idem.Atomic(ctx, name, func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		return idem.Response{Status: 201}, errors.Join(perr, err)
	})
}

// troubles make the troubles behind each alarm on waiting records.
var troubles = map[string]func(*testing.T, *desk){
	"WaitingUnknown": func(t *testing.T, d *desk) { d.stuck(t) },
	"WaitingStuck": func(t *testing.T, d *desk) {
		d.booked(t, "booked", errTimeout)
		if err := d.engine.MarkStuck(t.Context(), state.TicketFor(d.record(t)), "nobody can complete it"); err != nil {
			t.Fatal(err)
		}
	},
	"WaitingBlocked": func(t *testing.T, d *desk) {
		d.booked(t, "booked", errTimeout)
		d.booked(t, "renamed", nil)
	},
	"WaitingParked": func(t *testing.T, d *desk) {
		if _, err := d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", "jane's address"))
		}); err != nil {
			t.Fatal(err)
		}
		refuses := jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return errors.New("550 no such user") })
		if _, err := stream.NewSweep(d.client, d.store, func(o *stream.SweepOptions) {
			o.PagesPerSecond, o.Now = 1000, func() time.Time { return time.Now().Add(time.Hour) }
			o.Drain = stream.NewDrain(d.store, refuses, func(o *stream.DrainOptions) { o.MaxTries = 1 })
		}).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
}

// Each command that the runbook gives for waiting records, typed as
// printed, ends the alarm of its section.
func TestRemediesAsPrinted(t *testing.T) {
	raw, err := os.ReadFile(onCallPage)
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("`samekey ((?:settle|retry|redrive) [^`]+)`")
	for section, trouble := range troubles {
		_, text, _ := strings.Cut(string(raw), "\n## "+section+"\n")
		_, text, _ = strings.Cut(text, "**Do.**")
		text, _, _ = strings.Cut(text, "**Don't.**")
		typed := command.FindAllStringSubmatch(text, -1)
		if len(typed) == 0 {
			t.Errorf("%s has no remedy", section)
		}
		for _, m := range typed {
			t.Run(section+" "+m[1], func(t *testing.T) {
				d := newDesk(t)
				var log bytes.Buffer
				w := worker.New(d.client, d.store, completer.NewQueue(noTickets{}, "url"), func(o *worker.Options) { o.Hooks = metrics.New(&log, "rides").StreamHooks() })
				waits := func() float64 {
					log.Reset()
					if _, err := w.Invoke(t.Context(), []byte(`{"source":"aws.scheduler","task":"count"}`)); err != nil {
						t.Fatal(err)
					}
					lines, err := emf.Parse(log.Bytes())
					if err != nil {
						t.Fatal(err)
					}
					return emf.Sum(lines, section)
				}
				trouble(t, d)
				if n := waits(); n != 1 {
					t.Fatalf("the trouble counts %v", n)
				}
				words := strings.NewReplacer("PK", d.record(t).PK, "--result JSON", `--result '"ch_1"'`, "--body JSON", `--body '{"id":1}'`, "STATUS", "410").Replace(m[1])
				if code, stdout, stderr := callWith(t, "y\n", d.env, commandWords(words)...); code != 0 {
					t.Fatalf("samekey %s: code %d, %s%s", words, code, stdout, stderr)
				}
				if n := waits(); n != 0 {
					t.Errorf("after samekey %s the alarm goes on: %v", words, n)
				}
			})
		}
	}
}
