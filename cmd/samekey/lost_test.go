package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
)

// lossy applies the operator's first update, calls then, in which others
// may write, and loses the answer. DynamoDB refuses the SDK's repeat.
type lossy struct {
	then func() // nil once it was called
	drop bool   // don't apply the update
}

func (l *lossy) Do(req *http.Request) (*http.Response, error) {
	if l.then == nil || req.Header.Get("X-Amz-Target") != "DynamoDB_20120810.UpdateItem" {
		return http.DefaultClient.Do(req)
	}
	if !l.drop {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	l.then()
	l.then = nil
	return nil, errors.New("connection reset by peer")
}

// decided runs a command on l, which loses the answer to its first update.
func (d *desk) decided(t *testing.T, l *lossy, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut strings.Builder
	code = run(t.Context(), environment{
		stdin: strings.NewReader(""), stdout: &out, stderr: &errOut, http: l, getenv: func(name string) string { return d.env[name] },
	}, append(args, "--yes"))
	if l.then != nil {
		t.Error("no update was sent")
	}
	return code, out.String(), errOut.String()
}

// A command reports a decision as made even if the answer to its write
// was lost, and another operator wrote the record before the repeat.
func TestDecisionWhoseAnswerWasLost(t *testing.T) {
	goesOn := func(t *testing.T, d *desk) {
		t.Helper()
		calls := 1
		if _, err := d.pay(t.Context(), &calls); err != nil {
			t.Error(err)
		}
	}
	for name, tt := range map[string]struct {
		begin func(t *testing.T, d *desk)
		args  []string
		then  func(t *testing.T, d *desk)
		what  string // how the decision begins
		by    string // another operator, who decides meanwhile
	}{
		"settle, and the client goes on": {stuckly, []string{"settle", "--not-made"}, goesOn, "not made", ""},
		"settle, and another operator answers": {
			stuckly, []string{"settle", "--not-made"}, func(t *testing.T, d *desk) {
				t.Helper()
				if err := d.engine.Settle(t.Context(), d.record(t).PK, idem.Settlement{Answer: &idem.Response{Status: 410}, By: "omar"}); err != nil {
					t.Error(err)
				}
			}, "not made", "omar",
		},
		"forget, and the client begins anew": {stuckly, []string{"forget", "--lose-work", "--lose-jobs"}, goesOn, "forget ", ""},
		"release, and the client goes on": {
			func(t *testing.T, d *desk) {
				t.Helper()
				_, err := d.engine.Do(t.Context(), request(), func(context.Context) (idem.Response, error) {
					rec := d.record(t)
					if _, err := d.store.Commit(t.Context(), store.Commit{Prev: rec, Next: held(rec)}); err != nil {
						t.Error(err)
					}
					return idem.Response{}, errTimeout
				})
				if err == nil {
					t.Error("answered")
				}
			}, []string{"release"}, func(t *testing.T, d *desk) {
				t.Helper()
				if _, err := d.engine.Do(t.Context(), request(), func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }); err != nil {
					t.Error(err)
				}
			}, "end the lease", "",
		},
		"erase, and somebody forgets": {
			func(t *testing.T, d *desk) {
				t.Helper()
				if _, err := d.engine.Do(t.Context(), request(), func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }); err != nil {
					t.Error(err)
				}
			}, []string{"erase", "--caller", "jwt:jane"}, func(t *testing.T, d *desk) {
				t.Helper()
				if _, err := d.engine.Forget(t.Context(), state.TicketFor(d.record(t)), "omar", idem.Loss{Work: true}); err != nil {
					t.Error(err)
				}
			}, "erase", "omar",
		},
		"redrive, and the job is parked again": {
			parkedly, []string{"redrive"}, func(t *testing.T, d *desk) { t.Helper(); d.park(t) }, "redrive 0.0", "",
		},
		"redrive, and the job is delivered": {
			parkedly, []string{"redrive"}, func(t *testing.T, d *desk) {
				t.Helper()
				d.drain(t, jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return nil }))
			}, "redrive 0.0", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			tt.begin(t, d)
			rec := d.record(t)
			args := tt.args
			if args[0] != "erase" {
				args = append(args, rec.PK)
			}
			code, stdout, stderr := d.decided(t, &lossy{then: func() { tt.then(t, d) }}, args...)
			if code != 0 || stdout == "" || strings.Contains(stderr, "nothing was changed") {
				t.Errorf("code %d, %q, %q", code, stdout, stderr)
			}
			var got, by string
			for _, dec := range d.record(t).Settled {
				if dec.By == "jane" {
					got += dec.What + ";"
				} else {
					by = dec.By
				}
			}
			if !strings.HasPrefix(got, tt.what) || strings.Count(got, ";") != 1 || by != tt.by {
				t.Errorf("the record has %q by jane, others %q; want one %q, others %q", got, by, tt.what, tt.by)
			}
		})
	}
}

// A command reports a decision as not made if another operator was
// faster, and as unknown if the record can no longer show it.
func TestDecisionWithoutAnAnswer(t *testing.T) {
	const unknown = "the change may have been made: look at the record again"
	for name, tt := range map[string]struct {
		begin func(t *testing.T, d *desk)
		args  []string
		drop  bool
		then  func(t *testing.T, d *desk)
		want  string
	}{
		"lost, and another operator decides": {
			stuckly, []string{"settle", "--not-made"}, true, func(t *testing.T, d *desk) {
				t.Helper()
				if err := d.engine.Settle(t.Context(), d.record(t).PK, idem.Settlement{NotMade: true, By: "omar"}); err != nil {
					t.Error(err)
				}
			}, "nothing was changed",
		},
		"lost, and another operator redrives": {
			parkedly, []string{"redrive"}, true, func(t *testing.T, d *desk) {
				t.Helper()
				rec := d.record(t)
				if _, err := stream.Redrive(t.Context(), d.store, rec.PK, rec.ID, "omar"); err != nil {
					t.Error(err)
				}
			}, "nothing was changed",
		},
		"the key is another operation's": {
			stuckly, []string{"settle", "--not-made"}, false, func(t *testing.T, d *desk) {
				t.Helper()
				d.replace(t)
			}, unknown,
		},
		"the key of a redriven job is another operation's": {
			parkedly, []string{"redrive"}, false, func(t *testing.T, d *desk) {
				t.Helper()
				d.replace(t)
			}, unknown,
		},
		"too many have decided since": {
			stuckly, []string{"settle", "--risk-twice"}, false, func(t *testing.T, d *desk) {
				t.Helper()
				for range 12 {
					rec := d.record(t)
					if err := d.engine.MarkStuck(t.Context(), state.TicketFor(rec), "again"); err != nil {
						t.Error(err)
					}
					if err := d.engine.Settle(t.Context(), rec.PK, idem.Settlement{By: "omar"}); err != nil {
						t.Error(err)
					}
				}
			}, unknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			tt.begin(t, d)
			code, stdout, stderr := d.decided(t, &lossy{drop: tt.drop, then: func() { tt.then(t, d) }}, append(tt.args, d.record(t).PK)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, tt.want) || tt.want != "nothing was changed" && strings.Contains(stderr, "nothing was changed") {
				t.Errorf("code %d, %q, %q; want %q", code, stdout, stderr, tt.want)
			}
		})
	}
}

func stuckly(t *testing.T, d *desk) { t.Helper(); d.stuck(t) }

// held returns the record as held by an attempt that died.
func held(rec *store.Record) *store.Record {
	next := rec.Clone()
	next.Owner, next.Ver, next.Lease = "dead", rec.Ver+1, time.Now().Add(time.Hour).Truncate(time.Millisecond)
	return next
}

// parkedly makes a record with a parked job.
func parkedly(t *testing.T, d *desk) {
	t.Helper()
	if _, err := d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", "secret address"))
	}); err != nil {
		t.Fatal(err)
	}
	d.park(t)
}

func (d *desk) park(t *testing.T) {
	t.Helper()
	d.drain(t, jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return errors.New("550 no such user") }))
}

// drain delivers the table's jobs by a sweep.
func (d *desk) drain(t *testing.T, sink jobs.Sink) {
	t.Helper()
	if _, err := stream.NewSweep(d.client, d.store, func(o *stream.SweepOptions) {
		o.PagesPerSecond, o.Now = 1000, func() time.Time { return time.Now().Add(time.Hour) }
		o.Drain = stream.NewDrain(d.store, sink, func(o *stream.DrainOptions) { o.MaxTries = 1 })
	}).Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// replace gives the key to another operation, as after the record has expired.
func (d *desk) replace(t *testing.T) {
	t.Helper()
	table := d.env["IDEM_TABLE"]
	if _, err := d.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &table, Key: map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: d.record(t).PK}},
	}); err != nil {
		t.Error(err)
	}
	if _, err := d.engine.Do(t.Context(), request(), func(context.Context) (idem.Response, error) { return idem.Response{Status: 201}, nil }); err != nil {
		t.Error(err)
	}
}
