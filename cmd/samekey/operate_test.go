package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/callertest"
)

// get finds a record by every name that a person may have, and doesn't print the customer's key.
func TestGetByEverything(t *testing.T) {
	d := newDesk(t)
	rec := d.stuck(t)
	for name, args := range map[string][]string{
		"key":       {"--key", customersKey, "--scope", "jwt:jane"},
		"record":    {rec.PK},
		"operation": {rec.ID},
		"job":       {rec.ID + ".0.0"},
		"derived":   {d.keys[0], "--pages", "1000"},
		"short":     {redact.Record(rec.PK), "--since", "1h"},
	} {
		var s records.Story
		out := d.ok(t, append([]string{"get", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &s); err != nil || s.Record != rec.PK || s.State != "stuck" {
			t.Errorf("%s: %v in %s", name, err, out)
		}
		if strings.Contains(out, customersKey) || strings.Contains(out, "secret") {
			t.Errorf("%s: shows a key or data: %s", name, out)
		}
	}
	if code, stdout, stderr := callWith(t, customersKey+"\n", d.env, "get", "--key", "-", "--scope", "jwt:jane"); code != 0 || strings.Contains(stdout+stderr, customersKey) {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	says(t, "get", scrubbed(d.ok(t, "get", rec.PK)), "route  POST /rides\nscope  jwt:jane\nhandler  rides/create\n", `waits for people: the outcome of phase "charge_created" is unknown: timeout.`,
		"ride_created  TIME  DURATION  \n", "maps, route  DERIVED-KEY  recorded  TIME", "OPERATION.0.0  mail  ride_created  waiting  0  \n", `samekey settle v1#rides#HASH --result '"TEXT"'`)
	says(t, "get --data", d.ok(t, "get", "--data", rec.PK), `"secret ride"`, `"secret address"`)
	says(t, "list", scrubbed(d.ok(t, "list")), `unknown  1  DURATION  0  POST /rides  charge_created  v1#rides#HASH  the outcome of phase "charge_created" is unknown: timeout`)
	says(t, "list --json", scrubbed(d.ok(t, "list", "--json")), `"reason": "unknown",`, `"pk": "v1#rides#HASH",`, `"phase": "charge_created",`, `"complete": true`)
	// A derived key in doubt of a released record isn't in the index; a scan finds it.
	d.fails(t, 1, "not found in the index", "get", "--no-scan", "AAAAAAAAAAAAAAAAAAAAAAAAAA")
	d.fails(t, 3, "no record matches", "get", "--pages", "1000", "AAAAAAAAAAAAAAAAAAAAAAAAAA")
	d.fails(t, 3, "no record matches", "get", "--pages", "1000", "--since", "1ms", "AAAAAAAA")
	d.fails(t, 1, "was not found", "get", "--key", "another", "--scope", "jwt:jane")
	d.fails(t, 1, "was not found", "get", "--key", customersKey, "--scope", "jwt:omar")
	d.fails(t, 3, "no record", "get", "v1##nobody")
	d.fails(t, 2, "no record is named", "get")
	d.fails(t, 2, "not both", "get", "--key", "k", "--scope", "one", rec.PK)
	d.fails(t, 2, "is not a partition key", "get", "nonsense\x1b[2J")
}

// A call with an unknown outcome is settled as made, or as not made.
func TestSettleACall(t *testing.T) {
	for name, tt := range map[string]struct {
		flags  []string
		calls  int
		charge string
	}{
		"made":       {[]string{"--result", `"ch_found"`}, 1, "ch_found"},
		"not made":   {[]string{"--not-made"}, 2, "ch_new"},
		"risk twice": {[]string{"--risk-twice"}, 2, "ch_new"},
	} {
		t.Run(name, func(t *testing.T) {
			d, calls := newDesk(t), 1
			pk := d.stuck(t).PK
			d.fails(t, 1, "use samekey settle with", "retry", "--yes", pk)
			before := d.record(t)
			d.ok(t, append([]string{"settle", "--dry-run", pk}, tt.flags...)...)
			if now := d.record(t); now.Ver != before.Ver {
				t.Error("a dry run wrote")
			}
			if out := d.ok(t, append([]string{"settle", "--yes", pk}, tt.flags...)...); !strings.Contains(out, "open") {
				t.Errorf("printed %q", out)
			}
			d.fails(t, 1, "not stuck", "settle", "--yes", pk, "--not-made")
			res, err := d.pay(t.Context(), &calls)
			if err != nil || string(res.Body) != tt.charge || calls != tt.calls {
				t.Errorf("got %s, %v after %d calls", res.Body, err, calls)
			}
			got := d.record(t).Settled
			if len(got) != 1 || got[0].By != "jane" || got[0].From != "stuck" || got[0].To != "released" || time.Since(got[0].At).Abs() > time.Hour {
				t.Errorf("history %+v", got)
			}
		})
	}
}

// A decision that can't be undone is shown as the program will see it, and made only after a yes.
func TestSettleAnswerAsks(t *testing.T) {
	d, calls := newDesk(t), 1
	pk := d.stuck(t).PK
	ver := d.record(t).Ver
	for name, tt := range map[string]struct {
		args  []string
		shown string
	}{
		"a text":      {[]string{"--result", `"ch\u005f1"`}, "The call of phase \"charge_created\" returned the text ch_1\n"},
		"not made":    {[]string{"--not-made"}, "charge_created\" had no effect. The call is made once more.\n"},
		"risk twice":  {[]string{"--risk-twice"}, "may have its effect twice.\n"},
		"an answer":   {[]string{"--answer", "410", "--body", "gone\x1b[2J"}, "The operation (POST /rides) ends: the client gets 410 from now on, with this body of 8 bytes:\ngone [2J\n"},
		"the summary": {[]string{"--not-made"}, "Stuck, and waits for people: the outcome of phase"},
	} {
		for _, typed := range []string{"", "n\n", "yesterday\n"} {
			code, stdout, stderr := callWith(t, typed, d.env, append([]string{"settle", pk}, tt.args...)...)
			if code != 1 || stdout != "" || !strings.Contains(stderr, tt.shown) || !strings.Contains(stderr, "not confirmed") {
				t.Errorf("%s, %q typed: code %d, %q, %q; want %q", name, typed, code, stdout, stderr, tt.shown)
			}
		}
	}
	for _, result := range []string{"1e3", "null", "{}", `["ch_1"]`} {
		d.fails(t, 1, `; the program reads "TEXT"`, "settle", "--yes", "--result", result, pk)
	}
	d.fails(t, 2, "one of --answer", "settle", "--yes", pk)
	d.fails(t, 2, "give exactly one of", "settle", "--yes", "--not-made", "--risk-twice", pk)
	d.fails(t, 2, "not JSON", "settle", "--yes", "--result", "ch_1", pk)
	d.fails(t, 2, "--answer is 99", "settle", "--yes", "--answer", "99", pk)
	d.fails(t, 2, "no such file", "settle", "--yes", "--answer", "410", "--body-file", filepath.Join(t.TempDir(), "none"), pk)
	who := d.env["USER"]
	delete(d.env, "USER")
	d.fails(t, 2, "no name of the person who decides", "settle", "--yes", "--answer", "410", pk)
	d.env["USER"] = who
	if now := d.record(t); now.Ver != ver {
		t.Errorf("version %d: was written without a yes", now.Ver)
	}
	code, stdout, stderr := callWith(t, "Yes\n", d.env, "settle", "--key", customersKey, "--scope", "jwt:jane", "--answer", "410", "--body", `{"error":"refunded"}`, "--json")
	if code != 0 || strings.Contains(stdout+stderr, customersKey) {
		t.Fatalf("code %d, %s%s", code, stdout, stderr)
	}
	says(t, "settle --json", stdout, `"by": "jane"`, `"from": "stuck"`, `"done": "done: the client gets 410 from now on"`)
	says(t, "settle", scrubbed(stderr), "The operation (POST /rides) ends: the client gets 410 from now on, with this body of 20 bytes:\n"+`{"error":"refunded"}`+"\nThe answer is replayed until TIME", "This can't be undone.\n")
	res, err := d.pay(t.Context(), &calls)
	if err != nil || res.Status != 410 || string(res.Body) != `{"error":"refunded"}` || !res.Replayed || calls != 1 {
		t.Errorf("got %+v, %v after %d calls", res, err, calls)
	}
	says(t, "get of a settled one", scrubbed(d.ok(t, "get", pk)), "Done: retries get 410.", "a person gave the answer", "TIME  jane  answer 410  stuck  done")
}

// One command shows each entry beside a record, and another command ends it.
func TestListedBesideTheRecord(t *testing.T) {
	hours := time.Duration(0)
	sweep := func(t *testing.T, d *desk, sink jobs.Sink) {
		t.Helper()
		hours += 2
		_, _ = stream.NewSweep(d.client, d.store, func(o *stream.SweepOptions) { // the error says that jobs are waiting
			o.PagesPerSecond, o.Drain, o.Now = 1000, stream.NewDrain(d.store, sink), func() time.Time { return time.Now().Add(hours * time.Hour) }
		}).Run(t.Context())
	}
	shows := func(t *testing.T, d *desk, want string, args ...string) {
		t.Helper()
		if out := d.ok(t, args...); !strings.Contains(out, want) || want == "" && out != "" {
			t.Errorf("samekey %s says %q, want %q", strings.Join(args, " "), out, want)
		}
	}
	t.Run("a queue's operation that people have decided about", func(t *testing.T) {
		d, calls := newDesk(t), 0
		message := idem.Request{Source: "arn:aws:sqs:us-east-1:1:mails", Operation: "mail", Key: customersKey}
		take := func(err error) error {
			_, err = d.engine.Do(t.Context(), message, func(ctx context.Context) (idem.Response, error) {
				_, err := idem.Foreign(ctx, "sent", func(context.Context, *idem.Tx) (int, error) { calls++; return 1, err }, idem.NotIdempotent())
				return idem.Response{Status: 200}, err
			})
			return err
		}
		if err := take(errTimeout); !errors.Is(err, idem.ErrStuck) {
			t.Fatal(err)
		}
		var pk string
		for e, err := range stream.NewWaiting(d.client, d.store).All(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			pk = e.PK
		}
		d.ok(t, "settle", "--yes", "--not-made", pk)
		shows(t, d, "its message has not been delivered since: if the message is in a dead-letter queue, redrive that queue", "list", "--each")
		sweep(t, d, jobs.Route{})
		shows(t, d, "blocked since", "get", pk)
		if err := take(nil); err != nil || calls != 2 {
			t.Fatalf("%v after %d calls", err, calls)
		}
		sweep(t, d, jobs.Route{})
		shows(t, d, "", "list")
	})
	t.Run("a message that is no ticket", func(t *testing.T) {
		d, pk := newDesk(t), state.NoTicket+"m1"
		if err := stream.Refer(t.Context(), d.store, jobs.Ticket{PK: pk}, errors.New("not a ticket")); err != nil {
			t.Fatal(err)
		}
		shows(t, d, pk, "list", "--each")
		d.fails(t, exitFound, "this is not a record, but a message of the tickets' queue: not a ticket; samekey forget "+pk+" removes the message from samekey list", "get", pk)
		d.fails(t, exitFound, "samekey list shows no message", "forget", "--yes", state.NoTicket+"m2")
		d.fails(t, exitFailed, "not confirmed", "forget", pk)
		shows(t, d, "dismissed", "forget", "--yes", pk)
		shows(t, d, "", "list")
	})
	t.Run("a job whose kind has no sink", func(t *testing.T) {
		d := newDesk(t)
		if _, err := d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
			return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", 1))
		}); err != nil {
			t.Fatal(err)
		}
		sweep(t, d, jobs.Route{})
		shows(t, d, "", "list")
		sweep(t, d, jobs.Route{})
		shows(t, d, `there is none for jobs of kind "mail"`, "list", "--each")
		shows(t, d, `there is none for jobs of kind "mail"`, "get", d.record(t).PK)
		sweep(t, d, jobs.Route{"mail": jobs.SinkFunc(func(context.Context, jobs.Delivery) error { return nil })})
		sweep(t, d, jobs.Route{})
		shows(t, d, "", "list")
	})
}

// An answer that a person gives is kept as long as the function's own
// answers, without a flag: a retry after a day doesn't run.
func TestSettledAnswerHoldsAsTheFunctionsOwn(t *testing.T) {
	d, calls := newDesk(t), 0
	const retention = 720 * time.Hour
	pay := func(after time.Duration) (idem.Result, error) {
		engine := idem.New(d.store, callertest.Anybody, func(o *idem.Options) {
			o.Namespace, o.Retention = "rides", retention
			o.Now = func() time.Time { return time.Now().Add(after) }
		})
		return engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Foreign(ctx, "charge_created", func(context.Context, *idem.Tx) (string, error) {
				calls++
				return "", errTimeout
			}, idem.NotIdempotent())
			return idem.Response{}, err
		})
	}
	if _, err := pay(0); !errors.Is(err, idem.ErrStuck) {
		t.Fatal(err)
	}
	d.ok(t, "settle", "--yes", "--answer", "200", "--body", `{"id":"ch_1"}`, d.record(t).PK) // as in docs/operate/runbook.md
	for _, after := range []time.Duration{25 * time.Hour, retention - time.Minute} {
		if res, err := pay(after); err != nil || !res.Replayed || string(res.Body) != `{"id":"ch_1"}` {
			t.Errorf("after %v: %+v, %v", after, res, err)
		}
	}
	if calls != 1 {
		t.Errorf("the provider was called %d times", calls)
	}
}

// meanwhile answers a question only after another writer has changed the record.
type meanwhile struct {
	do    func()
	typed io.Reader
}

func (m *meanwhile) Read(p []byte) (int, error) {
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return m.typed.Read(p)
}

// Every command leaves a record alone that changed before the person's yes.
func TestMovedRecordsAreRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"settle": {"settle", "--answer", "410"}, "forget": {"forget", "--lose-work", "--lose-jobs"}, "not made": {"settle", "--not-made"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			rec := d.stuck(t)
			var stderr, stdout strings.Builder
			env := environment{stdout: &stdout, stderr: &stderr, getenv: func(n string) string { return d.env[n] }, stdin: &meanwhile{func() {
				if err := d.engine.Settle(t.Context(), rec.PK, idem.Settlement{NotMade: true, By: "omar"}); err != nil {
					t.Error(err)
				}
			}, strings.NewReader("y\n")}}
			if code := run(t.Context(), env, append(args, rec.PK)); code != 1 || !strings.Contains(stderr.String(), "nothing was changed: look at the record again") || stdout.String() != "" {
				t.Errorf("code %d, %s%s", code, stdout.String(), stderr.String())
			}
			if now := d.record(t); now.State != store.Open || len(now.Settled) != 1 || now.Settled[0].By != "omar" {
				t.Errorf("the record became %+v", now)
			}
		})
	}
}

// release ends a dead attempt's lease: the client's retry continues at
// once, and the dead attempt can write nothing more.
func TestRelease(t *testing.T) {
	d := newDesk(t)
	runs := 0
	var lost error
	_, err := d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
		if runs++; runs == 1 {
			pk := d.record(t).PK
			d.fails(t, 1, "an attempt holds the record", "forget", "--yes", pk)
			out := d.ok(t, "release", "--yes", pk)
			says(t, "release", out, "released: the client's next retry continues the operation at once\n")
			d.fails(t, 1, "no attempt holds the record", "release", "--yes", pk)
			res, err := d.engine.Do(t.Context(), request(), func(context.Context) (idem.Response, error) {
				return idem.Response{Status: 201, Body: []byte("retry")}, nil
			})
			if err != nil || string(res.Body) != "retry" {
				t.Errorf("the retry got %s, %v", res.Body, err)
			}
			_, lost = idem.Atomic(ctx, "late", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
		}
		return idem.Response{Status: 201, Body: []byte("dead")}, lost
	})
	if lost == nil {
		t.Errorf("the attempt that was given up committed a phase, and got %v", err)
	}
	rec := d.record(t)
	if string(rec.Response.Body) != "retry" || len(rec.Settled) != 1 || rec.Settled[0].What != "end the lease" || rec.Settled[0].From != "held" {
		t.Errorf("got %+v", rec)
	}
}

// forget frees a key only with the flags of all losses; the next request with the key runs anew.
func TestForget(t *testing.T) {
	d, calls := newDesk(t), 1
	rec := d.stuck(t)
	d.fails(t, 1, "undelivered jobs", "forget", "--yes", rec.PK)
	d.fails(t, 1, "committed work", "forget", "--yes", "--lose-jobs", rec.PK)
	d.fails(t, 1, "not confirmed", "forget", "--lose-jobs", "--lose-work", rec.PK)
	code, stdout, stderr := call(t, d.env, "forget", "--yes", "--lose-jobs", "--lose-work", rec.PK)
	says(t, "forget", scrubbed(stdout+stderr), "forgotten: operation OPERATION, by jane; the jobs are removed, ", `the work: phases ["ride_created" "charge_created"]`, "(--lose-work)\n", "(--lose-jobs)")
	if code != 0 {
		t.Fatal(stderr)
	}
	now := d.record(t)
	if !state.Freed(now) || len(now.Settled) != 1 || now.Settled[0].To != "free" {
		t.Errorf("got %+v", now)
	}
	d.fails(t, 1, "already free", "forget", "--yes", "--lose-jobs", "--lose-work", rec.PK)
	if out := d.ok(t, "list"); out != "" {
		t.Errorf("still listed: %s", out)
	}
	if res, err := d.pay(t.Context(), &calls); err != nil || string(res.Body) != "ch_new" || d.record(t).ID == rec.ID {
		t.Errorf("got %+v, %v", res, err)
	}
}

// A record with a hand-written key has no namespace: commands refuse
// decisions about it, and erase lists it.
func TestKeyWithoutNamespace(t *testing.T) {
	for _, pk := range []string{"by-hand", "v1#my rides#k", "v1#" + strings.Repeat("n", 65) + "#k"} {
		t.Run(pk, func(t *testing.T) { keyWithoutNamespace(t, pk) })
	}
}

func keyWithoutNamespace(t *testing.T, pk string) {
	t.Helper()
	d := newDesk(t)
	rec := d.stuck(t)
	table := d.env["IDEM_TABLE"]
	for _, it := range d.items(t) {
		if it["pk"].(*types.AttributeValueMemberS).Value != rec.PK {
			continue
		}
		if _, err := d.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &table, Key: map[string]types.AttributeValue{"pk": it["pk"]}}); err != nil {
			t.Fatal(err)
		}
		it["pk"] = &types.AttributeValueMemberS{Value: pk}
		if _, err := d.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: it}); err != nil {
			t.Fatal(err)
		}
	}
	d.fails(t, 1, "not of the namespace", "settle", "--yes", "--not-made", rec.ID)
	if code, stdout, stderr := call(t, d.env, "erase", "--caller", "jwt:jane", "--yes"); code != 3 || !strings.Contains(stdout, pk) {
		t.Errorf("erase: got code %d: %s%s, want 3, and the record listed", code, stdout, stderr)
	}
}

// retry opens a stuck operation without a call in doubt.
func TestRetry(t *testing.T) {
	d := newDesk(t)
	fails := true
	do := func() (idem.Result, error) {
		return d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
			if _, err := idem.Atomic(ctx, "ride_created", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil || fails {
				return idem.Response{}, errors.Join(err, errTimeout)
			}
			return idem.Response{Status: 201}, nil
		})
	}
	if _, err := do(); err == nil {
		t.Fatal("answered")
	}
	rec := d.record(t)
	d.fails(t, 1, "is not stuck", "retry", "--yes", rec.PK)
	if err := d.engine.MarkStuck(t.Context(), state.TicketFor(rec), "the bank is gone"); err != nil {
		t.Fatal(err)
	}
	fails = false
	says(t, "retry", d.ok(t, "retry", "--yes", rec.ID), "open: only the client's next retry with the same key continues the operation")
	if res, err := do(); err != nil || res.Status != 201 {
		t.Errorf("got %+v, %v", res, err)
	}
}

// redrive delivers parked jobs again, and the record keeps the decision.
func TestRedrive(t *testing.T) {
	d := newDesk(t)
	if _, err := d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", "jane's address"), idem.NewJob("mail", "omar's"))
	}); err != nil {
		t.Fatal(err)
	}
	rec := d.record(t)
	d.fails(t, 1, "nothing to redrive: the record has no parked job, or none of the named jobs is parked", "redrive", "--yes", rec.PK)
	sink := jobs.SinkFunc(func(_ context.Context, job jobs.Delivery) error {
		if strings.HasSuffix(job.JobID, ".0.0") {
			return errors.New("550 no such\nuser\x1b[2J")
		}
		return jobs.ErrHeldBack
	})
	if _, err := stream.NewSweep(d.client, d.store, func(o *stream.SweepOptions) {
		o.PagesPerSecond, o.Now = 1000, func() time.Time { return time.Now().Add(time.Hour) }
		o.Drain = stream.NewDrain(d.store, sink, func(o *stream.DrainOptions) { o.MaxTries = 1 })
	}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"list", "list --scan --pages 1000"} {
		says(t, args, scrubbed(d.ok(t, strings.Fields(args)...)), "parked  1  DURATION  1  POST /rides  job OPERATION.0.0 mail  v1#rides#HASH  550 no such user [2J")
	}
	says(t, "get of a parked job", scrubbed(d.ok(t, "get", rec.PK)), "OPERATION.0.0  mail  parked  1  550 no such user [2J", "samekey redrive v1#rides#HASH 0.0")
	d.fails(t, 1, "nothing to redrive: the record has no parked job, or none of the named jobs is parked", "redrive", "--yes", rec.PK, "0.1")
	d.fails(t, 1, "another operation", "redrive", "--yes", rec.PK, "ANOTHER.0.0")
	says(t, "redrive", d.ok(t, "redrive", "--yes", rec.ID+".0.0"), "jobs redriven: 1; the drain delivers them from the table's stream\n")
	now := d.record(t)
	if now.Jobs["0.0"].Failed != "" || len(now.Settled) != 1 || now.Settled[0].By != "jane" || now.Settled[0].What != "redrive 0.0" || now.Settled[0].From != "kept" {
		t.Errorf("got %+v", now)
	}
	if out := d.ok(t, "list"); out != "" {
		t.Errorf("listed %s", out)
	}
}

// cancel removes a later job, and no other job; the record keeps the decision.
func TestCancel(t *testing.T) {
	d := newDesk(t)
	if _, err := d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
		first, second := idem.NewJob("remind", "jane's address"), idem.NewJob("remind", "omar's")
		first.At, second.At = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", "jane's address"), first, second)
	}); err != nil {
		t.Fatal(err)
	}
	rec := d.record(t)
	says(t, "get of later jobs", scrubbed(d.ok(t, "get", rec.PK)), "OPERATION.0.1  remind  later, TIME  0", "samekey cancel v1#rides#HASH 0.1\n")
	if out := d.ok(t, "list", "--scan", "--pages", "1000"); out != "" {
		t.Errorf("listed %s", out)
	}
	d.fails(t, 1, "nothing to cancel: only a later job whose delivery has not begun can be cancelled", "cancel", "--yes", rec.PK, "0.0")
	d.fails(t, 1, "another operation", "cancel", "--yes", rec.PK, "ANOTHER.0.1")
	if out := d.ok(t, "cancel", "--dry-run", rec.PK); strings.Contains(out, "cancelled") {
		t.Errorf("a dry run says %s", out)
	}
	says(t, "cancel", d.ok(t, "cancel", "--yes", rec.ID+".0.1"), "jobs cancelled: 1\n")
	now := d.record(t)
	if _, there := now.Jobs["0.1"]; there || len(now.Jobs) != 2 || len(now.Settled) != 1 || now.Settled[0].By != "jane" || now.Settled[0].What != "cancel 0.1" || now.Settled[0].From != "kept" {
		t.Errorf("got %+v", now)
	}
	d.fails(t, 1, "nothing to cancel: only a later job whose delivery has not begun can be cancelled", "cancel", "--yes", rec.ID+".0.1")
	if out := d.ok(t, "cancel", "--yes", rec.PK); !strings.Contains(out, "jobs cancelled: 1") {
		t.Errorf("the rest: %s", out)
	}
}

// refuses is a sink that refuses jobs.
type refuses func(jobs.Delivery) error

func (r refuses) Deliver(_ context.Context, batch []jobs.Delivery) (errs []error) {
	for _, d := range batch {
		errs = append(errs, r(d))
	}
	return errs
}

// A job that was parked after the command showed its change stays parked.
func TestRedriveHandsOutOnlyWhatWasShown(t *testing.T) {
	d := newDesk(t)
	if _, err := d.engine.Do(t.Context(), request(), func(ctx context.Context) (idem.Response, error) {
		return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", "jane's address"), idem.NewJob("mail", "omar's"))
	}); err != nil {
		t.Fatal(err)
	}
	park := func(job string) {
		sink := jobs.SinkFunc(func(_ context.Context, got jobs.Delivery) error {
			if strings.HasSuffix(got.JobID, job) {
				return errors.New("550 no such user")
			}
			return jobs.ErrHeldBack
		})
		if _, err := stream.NewSweep(d.client, d.store, func(o *stream.SweepOptions) {
			o.Name, o.PagesPerSecond, o.Now = job, 1000, func() time.Time { return time.Now().Add(time.Hour) }
			o.Drain = stream.NewDrain(d.store, sink, func(o *stream.DrainOptions) { o.MaxTries = 1 })
		}).Run(t.Context()); err != nil {
			t.Error(err)
		}
	}
	park(".0.0")
	var stderr, stdout strings.Builder
	env := environment{
		stdout: &stdout, stderr: &stderr, getenv: func(n string) string { return d.env[n] },
		stdin: &meanwhile{func() { park(".0.1") }, strings.NewReader("y\n")},
	}
	if code := run(t.Context(), env, []string{"redrive", d.record(t).PK}); code != 0 || !strings.HasPrefix(stdout.String(), "jobs redriven: 1;") {
		t.Errorf("code %d, %s%s", code, stdout.String(), stderr.String())
	}
	if now := d.record(t); now.Jobs["0.0"].Failed != "" || now.Jobs["0.1"].Failed == "" {
		t.Errorf("got jobs %+v", now.Jobs)
	}
}

// A short name that is also a namespace's name finds no other record of that namespace.
func TestOnlyWhatWasAskedForIsFound(t *testing.T) {
	d := newDesk(t)
	d.engine = idem.New(d.store, callertest.Anybody, func(o *idem.Options) { o.Namespace = "checkout" })
	d.env["IDEM_NAMESPACE"] = "checkout"
	calls := 0
	if _, err := d.pay(t.Context(), &calls); err == nil {
		t.Fatal("answered")
	}
	for _, args := range [][]string{
		{"get"}, {"forget", "--yes", "--lose-work", "--lose-jobs"}, {"settle", "--yes", "--not-made"}, {"retry", "--yes"}, {"release", "--yes"}, {"redrive", "--yes"},
	} {
		d.fails(t, 3, "no record matches", append(args, "--pages", "1000", "checkout")...)
	}
}
