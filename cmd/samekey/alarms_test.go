package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/prove"
)

// alarmed has the trouble behind an alarm, and the remedies in the runbook.
type alarmed struct {
	trouble func(*duty)
	every   bool        // trouble happens at each step, not once
	mend    func(*duty) // mends what no command can: a program, a role, a sink; may be nil
	after   func(*duty) // what clients and the completer do after the commands
	// says maps each command of the runbook's section to a part of its output. The commands
	// under Do are the remedies. A command with PK ends the trouble of one record.
	says map[string]string
	logs []string // lines in the log of function or worker
	soon bool     // the commands run 20 minutes after the trouble; the alarm lasts for a day

	by    time.Duration // latest time at which the alarm fires
	lasts time.Duration // least time for which the alarm lasts
	ends  time.Duration // latest end of the alarm after the remedies

	pks []string // the records, in the order of the commands with PK
	ref string   // the short name in a log line
}

// pay is a handler that works.
func pay(ctx context.Context) (idem.Response, error) {
	if _, err := idem.Atomic(ctx, "book", func(context.Context, *idem.Tx) (int, error) { return 1, nil }); err != nil {
		return idem.Response{}, err
	}
	return idem.Response{Status: 201, Body: []byte("paid")}, nil
}

func withMail(ctx context.Context) (idem.Response, error) {
	return idem.Response{Status: 201}, idem.Stage(ctx, idem.NewJob("mail", "to jane"))
}

// failsAfterBooking commits a phase, and then fails.
func failsAfterBooking(ctx context.Context) (idem.Response, error) {
	_, err := idem.Atomic(ctx, "book", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
	return idem.Response{}, errors.Join(err, errTimeout)
}

// plain returns a function that stores no requests.
func (d *duty) plain() handling { return d.handler(&dutyOptions{function: "plain"}) }

// left sends requests that fail, and notes their records.
func (d *duty) left(a *alarmed, h handling, body string, status, many int) {
	d.Helper()
	before := make(map[string]bool)
	for _, r := range d.records() {
		before[r.PK] = true
	}
	for range many {
		d.is(body, d.send(h, d.newKey(), body), status)
	}
	a.pks = nil
	for _, r := range d.records() {
		if !before[r.PK] {
			a.pks = append(a.pks, r.PK)
		}
	}
	if len(a.pks) != many {
		d.Fatalf("%d records of %d requests are left", len(a.pks), many)
	}
}

// again sends the requests of the last keys again.
func (d *duty) again(h handling, body string, statuses ...int) {
	d.Helper()
	for i, status := range statuses {
		d.is("the client's retry", d.send(h, fmt.Sprint("key-", d.keys-len(statuses)+1+i), body), status)
	}
}

// alarmTable returns a row for each alarm of the stack.
func alarmTable() map[string]*alarmed {
	all := make(map[string]*alarmed)
	row := func(name string, a *alarmed) *alarmed { all[name] = a; return a }

	unknown := row("WaitingUnknown", &alarmed{
		says: map[string]string{
			"samekey list --each --reason unknown": "unknown: 3", "samekey get PK": "the record has no derived key of the call of phase \"charge\"",
			"samekey settle PK --result JSON": "open: ", "samekey settle PK --not-made": "open: only the client's next retry", "samekey settle PK --answer 200 --body JSON": "done",
		},
		by: 10 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute,
	})
	unknown.trouble = func(d *duty) {
		made := 0
		d.does["charge"] = func(ctx context.Context) (idem.Response, error) {
			id, err := idem.Foreign(ctx, "charge", func(context.Context, *idem.Tx) (string, error) {
				if made++; made <= 3 {
					return "", errTimeout
				}
				return "ch_new", nil
			}, idem.NotIdempotent())
			return idem.Response{Status: 201, Body: []byte(id)}, err
		}
		d.left(unknown, d.plain(), "charge", 409, 3)
	}
	unknown.after = func(d *duty) { d.again(d.plain(), "charge", 201, 201, 200) }

	stuck := row("WaitingStuck", &alarmed{
		says: map[string]string{
			"samekey list --each --reason stuck": "stuck: 2", "samekey get PK": "Stuck",
			"samekey retry PK": "open: ", "samekey settle PK --answer STATUS --body JSON": "done",
		},
		by: 3 * time.Hour, lasts: 4 * time.Hour, ends: 2 * time.Hour,
		mend:  func(d *duty) { d.does["book"] = pay },
		after: func(d *duty) { d.pass(time.Hour); d.again(d.brief, "book", 201, 410) },
	})
	stuck.trouble = func(d *duty) {
		d.does["book"] = failsAfterBooking
		d.left(stuck, d.brief, "book", 500, 2)
	}

	blocked := row("WaitingBlocked", &alarmed{
		says: map[string]string{
			"samekey list --reason blocked": "blocked: 2", "samekey get PK": "refuses", "samekey vet --lock FILE --open": "book",
			"samekey settle PK --answer STATUS --body JSON": "done",
		},
		by: 10 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute,
	})
	blocked.trouble = func(d *duty) {
		d.does["rename"] = failsAfterBooking
		d.left(blocked, d.plain(), "rename", 500, 2)
		d.does["rename"] = func(ctx context.Context) (idem.Response, error) {
			_, err := idem.Atomic(ctx, "booked", func(context.Context, *idem.Tx) (int, error) { return 1, nil })
			return idem.Response{Status: 201}, err
		}
		d.again(d.plain(), "rename", 500, 500)
	}
	blocked.mend = func(d *duty) { d.does["rename"] = pay }
	blocked.after = func(d *duty) { d.again(d.plain(), "rename", 410, 201) }

	parked := row("WaitingParked", &alarmed{
		says: map[string]string{
			"samekey list --each --reason parked": "550 no such user", "samekey redrive PK": "1 ", "samekey redrive --all": "2 ",
		},
		by: 2 * time.Hour, lasts: 3 * time.Hour, ends: time.Hour,
		mend: func(d *duty) { d.sink = nil },
	})
	parked.trouble = func(d *duty) {
		d.sink, d.does["mail"] = errors.New("550 no such user"), withMail
		d.left(parked, d.plain(), "mail", 201, 3)
	}

	unreadable := row("WaitingUnreadable", &alarmed{
		says: map[string]string{"samekey list --scan --reason unreadable": "layout version", "samekey get PK": "fails: layout version 99"},
		by:   70 * time.Minute, lasts: 2 * time.Hour, ends: 90 * time.Minute,
	})
	var good fakedynamo.Item
	unreadable.trouble = func(d *duty) {
		d.does["book"] = failsAfterBooking
		d.left(unreadable, d.plain(), "book", 500, 1)
		good = d.put(unreadable.pks[0], func(it fakedynamo.Item) { it["v"] = &types.AttributeValueMemberN{Value: "99"} })
	}
	unreadable.mend = func(d *duty) { // as if restored from a backup
		d.put(unreadable.pks[0], func(it fakedynamo.Item) { clear(it); maps.Copy(it, good) })
		d.does["book"] = pay
		d.again(d.plain(), "book", 201)
	}

	row("WaitingSilent", &alarmed{
		says:    map[string]string{"samekey doctor --stack STACK": "schedule", "samekey list": "nothing waits for people"},
		trouble: func(d *duty) { d.counts = false; d.schedules("count", "DISABLED") },
		mend:    func(d *duty) { d.counts = true; d.schedules("count", "ENABLED") },
		by:      40 * time.Minute, lasts: 3 * time.Hour, ends: 30 * time.Minute,
	})

	abandoned := row("Abandoned", &alarmed{
		says: map[string]string{"samekey list --scan": "no_request: 1", "samekey get PK": "only"},
		by:   3 * time.Hour, lasts: 6 * time.Hour, ends: 3 * time.Hour,
	})
	abandoned.trouble = func(d *duty) {
		d.does["book"] = failsAfterBooking
		d.left(abandoned, d.plain(), "book", 500, 1)
	}
	abandoned.mend = func(d *duty) { d.does["book"] = pay }
	abandoned.after = func(d *duty) { d.again(d.plain(), "book", 201) }

	undelivered := row("Undelivered", &alarmed{
		says: map[string]string{"samekey list --scan": "undelivered: 1", "samekey sweep --function WORKER": "1 jobs delivered"},
		logs: []string{"delivery failed"},
		by:   3 * time.Hour, lasts: 6 * time.Hour, ends: 3 * time.Hour,
		mend: func(d *duty) { d.sink = nil },
	})
	undelivered.trouble = func(d *duty) {
		d.sink, d.does["mail"] = jobs.ErrSinkDown, withMail
		d.left(undelivered, d.plain(), "mail", 201, 1)
	}

	delivery := row("DeliveryFailed", &alarmed{
		every: true, logs: []string{"delivery failed"}, by: 30 * time.Minute, lasts: time.Hour, ends: 5 * time.Hour,
		mend: func(d *duty) { d.sink = nil },
	})
	delivery.trouble = func(d *duty) {
		d.sink, d.does["mail"] = jobs.ErrSinkDown, withMail
		d.is("with a mail", d.send(d.plain(), d.newKey(), "mail"), 201)
	}

	row("SweepOverdue", &alarmed{
		says:    map[string]string{"samekey list --stats": "records"},
		logs:    []string{"swept"},
		trouble: func(d *duty) { d.behind.set(refusingOps("AccessDeniedException", "Scan")) },
		mend:    func(d *duty) { d.behind.set(nil) },
		by:      27 * time.Hour, lasts: 30 * time.Hour, ends: 3 * time.Hour,
	})

	row("SweepSilent", &alarmed{
		says:    map[string]string{"samekey doctor --stack STACK": "schedule", "samekey sweep --function WORKER": "whole table seen: true"},
		trouble: func(d *duty) { d.sweeps = false; d.schedules("sweep", "DISABLED") },
		mend:    func(d *duty) { d.sweeps = true; d.schedules("sweep", "ENABLED") },
		by:      7 * time.Hour, lasts: 12 * time.Hour, ends: 2 * time.Hour,
	})

	row("ExpiredOpen", &alarmed{
		logs: []string{"an unfinished operation is gone", "a job that waited for people or for its time is gone with its record"},
		trouble: func(d *duty) {
			d.does["book"], d.does["mail"] = failsAfterBooking, withMail
			var both alarmed
			d.left(&both, d.plain(), "book", 500, 1)
			d.sink = errors.New("550 no such user")
			gone := both.pks
			d.left(&both, d.plain(), "mail", 201, 1)
			d.pass(2 * time.Hour) // the job is parked
			d.sink = nil
			for _, pk := range append(gone, both.pks...) {
				d.server.Locked(func(db *fakedynamo.DB) { db.Expire("records", pk) })
			}
		},
		by: 130 * time.Minute, lasts: 20 * time.Hour, ends: 10 * time.Hour,
	})

	unstored := row("Unstored", &alarmed{
		says: map[string]string{"samekey get REF": "settle", "samekey settle PK --answer STATUS --body JSON": "done"},
		logs: []string{"answer not stored: a retry after the lease runs again"},
		by:   10 * time.Minute, lasts: 20 * time.Hour, ends: 10 * time.Hour,
	})
	unstored.trouble = func(d *duty) {
		d.does["unstored"] = func(context.Context) (idem.Response, error) {
			d.fn.set(refusingOps("AccessDeniedException"))
			return idem.Response{Status: 201}, nil
		}
		d.is("unstored", d.send(d.plain(), d.newKey(), "unstored"), 201)
		d.fn.set(nil)
		unstored.ref, unstored.pks = d.shortName("answer not stored"), []string{d.records()[0].PK}
	}
	unstored.after = func(d *duty) { d.again(d.plain(), "unstored", 410) }

	notMine := row("NotMine", &alarmed{
		says: map[string]string{"samekey list": "blocked: 1", "samekey doctor --stack STACK": "renamed", "samekey sweep --function WORKER": "1 tickets made"},
		by:   20 * time.Minute, lasts: 90 * time.Minute, ends: 4 * time.Hour,
	})
	renamed := func(d *duty) handling {
		return d.handler(&dutyOptions{function: "renamed", engine: func(o *idem.Options) { o.Resumable = true }})
	}
	notMine.trouble = func(d *duty) {
		d.account.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders,renamed" // no function has the name renamed
		d.does["book"] = failsAfterBooking
		d.left(notMine, renamed(d), "book", 500, 1)
		d.does["book"] = pay
	}
	notMine.mend = func(d *duty) {
		d.account.Env("worker")["SAMEKEY_FUNCTIONS"] = "orders"
		d.deploy("renamed", renamed(d))
	}
	notMine.after = func(d *duty) { d.again(renamed(d), "book", 201) }

	row("Mismatch", &alarmed{
		logs: []string{"request ended"}, by: 10 * time.Minute, lasts: 50 * time.Minute, ends: time.Hour,
		trouble: func(d *duty) {
			key := d.newKey()
			d.is("new", d.send(d.plain(), key, "pay"), 201)
			for i := range 11 {
				d.is("mismatch", d.send(d.plain(), key, fmt.Sprint("pay ", i)), 422)
			}
		},
	})

	row("Denied", &alarmed{
		says:  map[string]string{"samekey doctor --stack STACK --as function": "dynamodb:PutItem is refused"},
		logs:  []string{"claim failed"},
		every: true, by: 20 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute,
		trouble: func(d *duty) {
			d.fn.set(refusingOps("AccessDeniedException", "PutItem"))
			d.is("denied", d.send(d.plain(), d.newKey(), "pay"), 503)
		},
		mend: func(d *duty) { d.fn.set(nil) },
	})

	failures := row("StoreFailures", &alarmed{
		logs:  []string{"claim failed", "record is corrupt", "the record's fingerprint can't be compared"},
		every: true, by: 25 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute,
	})
	failures.trouble = func(d *duty) {
		if failures.pks == nil { // a record of each kind
			failures.pks = []string{d.finished(), d.finished()}
			d.put(failures.pks[0], func(it fakedynamo.Item) { it["v"] = &types.AttributeValueMemberN{Value: "99"} })
			d.put(failures.pks[1], func(it fakedynamo.Item) { it["fpk"] = &types.AttributeValueMemberS{Value: "lost"} })
		}
		d.again(d.plain(), "pay", 500, 503)
		keys := d.keys
		d.fn.set(func(string) error { return errors.New("no connection") })
		for range 6 {
			d.is("no connection", d.send(d.plain(), d.newKey(), "pay"), 503)
		}
		d.keys = keys
		d.fn.set(nil)
	}
	failures.mend = func(d *duty) {
		for _, pk := range failures.pks {
			d.server.Locked(func(db *fakedynamo.DB) { db.Expire("records", pk) })
		}
	}

	row("TableThrottles", &alarmed{
		logs: []string{"claim failed"},
		by:   15 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute, every: true,
		trouble: func(d *duty) {
			d.is("new", d.send(d.plain(), d.newKey(), "pay"), 201)
			d.fn.set(refusingOps("ThrottlingException", "PutItem", "UpdateItem"))
			d.is("throttled", d.send(d.plain(), d.newKey(), "pay"), 503)
			d.fn.set(nil)
			d.metric("TableThrottles", 1)
		},
		mend: func(d *duty) { d.metric("TableThrottles", 0) },
	})

	row("WorkerErrors", &alarmed{
		by: 10 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute,
		trouble: func(d *duty) { d.behind.set(refusingOps("AccessDeniedException", "Query")) },
		mend:    func(d *duty) { d.behind.set(nil) },
	})
	row("WorkerThrottles", &alarmed{
		by: 15 * time.Minute, lasts: time.Hour, ends: 30 * time.Minute, every: true,
		trouble: func(d *duty) { d.metric("WorkerThrottles", 1) },
	})
	row("IteratorAge", &alarmed{
		by: 90 * time.Minute, lasts: 3 * time.Hour, ends: 30 * time.Minute, every: true,
		trouble: func(d *duty) {
			d.away = true
			if len(d.changes) == 0 {
				d.is("new", d.send(d.plain(), d.newKey(), "pay"), 201)
			}
			d.metric("IteratorAge", float64(time.Since(d.changes[0].Change.ApproximateCreationDateTime.Time)/time.Millisecond))
		},
		mend: func(d *duty) { d.away = false; d.metric("IteratorAge", 0) },
	})

	givenUp := func(name string, says map[string]string) {
		row(name, &alarmed{
			says: says, soon: true, by: 10 * time.Minute, lasts: 20 * time.Hour, ends: 10 * time.Hour,
			trouble: func(d *duty) {
				d.does["mail"] = withMail
				d.lost = name == "GivenUpLost"
				clear(d.mails)
				// The worker dies at each batch, and TTL removes one of two records.
				d.is("with a mail", d.send(d.plain(), d.newKey(), "mail"), 201)
				var gone alarmed
				d.left(&gone, d.plain(), "mail", 201, 1)
				d.server.Locked(func(db *fakedynamo.DB) { db.Expire("records", gone.pks[0]) })
				d.dies, d.sweeps = true, false
				d.pass(step)
				d.dies, d.lost = false, false
			},
			after: func(d *duty) {
				d.sweeps = true
				want := 2
				if name == "GivenUpLost" {
					want = 1
				}
				if got := d.mails[`"to jane"`]; got < want {
					d.Errorf("%d of %d mails have come", got, want)
				}
			},
		})
	}
	givenUp("GivenUp", map[string]string{
		"samekey sweep --function WORKER": "1 jobs delivered", "aws s3 sync s3://BUCKET failed": "", "samekey redrive --removed --function WORKER failed": "removed records sent to the worker: 1,",
	})
	givenUp("GivenUpLost", map[string]string{"samekey sweep --function WORKER": "1 jobs delivered"})

	tickets := func(name string, says map[string]string, lasts, ends time.Duration, lose func(*duty)) {
		a := row(name, &alarmed{says: says, by: 30 * time.Minute, lasts: lasts, ends: ends, mend: func(d *duty) { d.does["book"] = pay }})
		a.soon = lasts > 10*time.Hour
		a.trouble = func(d *duty) {
			d.does["book"] = failsAfterBooking
			d.left(a, d.app, "book", 500, 1)
			d.sweeps = false
			d.pass(step) // the ticket exists and is not due
			lose(d)
		}
		a.after = func(d *duty) { d.sweeps = true; d.pass(30 * time.Minute); d.again(d.app, "book", 201) }
	}
	tickets("Recursion", map[string]string{"samekey get REF": "the completer is late: see samekey list", "samekey sweep --function WORKER": "1 tickets made"},
		20*time.Hour, 10*time.Hour, func(d *duty) {
			for range 6 {
				if !d.logged("not completed") { // the first try fails
					d.pass(step)
				}
			}
			all["Recursion"].ref, all["Recursion"].logs = d.shortName("not completed"), []string{"not completed"}
			d.queue.Drop()
			d.metric("Recursion", 1)
		})
	tickets("DeadLetters", map[string]string{"samekey list --scan": "open: 1", "aws sqs start-message-move-task --source-arn ARN": ""},
		50*time.Minute, 2*time.Hour, func(d *duty) { d.queue.Bury() })
	return all
}

// put changes an item of the table, as a person may by hand, and returns the former item.
func (d *duty) put(pk string, change func(fakedynamo.Item)) (before fakedynamo.Item) {
	d.Helper()
	d.server.Locked(func(db *fakedynamo.DB) {
		before = db.Item("records", pk)
		it := maps.Clone(before)
		change(it)
		if _, err := db.PutItem(d.Context(), &dynamodb.PutItemInput{TableName: aws.String("records"), Item: it}); err != nil {
			d.Error(err)
		}
	})
	return before
}

// finished makes a finished request, and returns its partition key.
func (d *duty) finished() string {
	d.Helper()
	d.is("new", d.send(d.plain(), d.newKey(), "pay"), 201)
	pk := ""
	d.server.Locked(func(db *fakedynamo.DB) {
		pk = db.Last("records")
	})
	return pk
}

// shortName returns the short name of the record in the last log line that contains says.
func (d *duty) shortName(says string) string {
	d.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	at := strings.LastIndex(d.logs.String(), says)
	m := regexp.MustCompile(`"record":"([\w-]{8})"`).FindStringSubmatch(d.logs.String()[max(at, 0):])
	if at < 0 || m == nil {
		d.Fatalf("no line %q with a record", says)
	}
	return m[1]
}

// schedules sets the state of a worker's schedule.
func (d *duty) schedules(task, state string) { d.account.Schedule(task)["State"] = state }

// sectionOf returns the commands of a section of the runbook: look has
// those to look with, and do those to act with.
func sectionOf(t *testing.T, page, section string) (look, do []string, logs []string) {
	t.Helper()
	_, text, ok := strings.Cut(page, "\n## "+section+"\n")
	if !ok {
		t.Fatalf("the runbook has no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	text, _, _ = strings.Cut(text, "**Don't.**")
	before, after, _ := strings.Cut(text, "**Do.**")
	command := regexp.MustCompile("`((?:samekey|aws) [^`]+)`")
	for _, m := range command.FindAllStringSubmatch(before, -1) {
		look = append(look, m[1])
	}
	for _, m := range command.FindAllStringSubmatch(after, -1) {
		do = append(do, m[1])
	}
	for _, m := range regexp.MustCompile("(?:line|or|read|compared) \\(?`([^`$]+ [^`$]+)`").FindAllStringSubmatch(text, -1) {
		logs = append(logs, m[1])
	}
	return look, do, logs
}

// Each alarm begins with its trouble, lasts as long as expected, and ends. Each command
// of the alarm's section in the runbook runs as printed, and shows or ends the trouble.
// The table has 10³ records, with PROVE=all also 10⁶; all alarms share one table.
func TestEachAlarmAndItsWayOut(t *testing.T) {
	raw, err := os.ReadFile(onCallPage)
	if err != nil {
		t.Fatal(err)
	}
	someAccount(t)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	for _, many := range prove.Some([]int{1_000}, []int{1_000, 1_000_000}) {
		t.Run(fmt.Sprint(many), func(t *testing.T) {
			if many > 100_000 {
				defer debug.SetGCPercent(debug.SetGCPercent(20))
			}
			t.Chdir(t.TempDir())
			write(t, "lock.json", []byte(`{"version": 1, "packages": {"shop": {"order": [{"phase": "booked", "kind": "Atomic"}]}}}`))
			synctest.Test(t, func(t *testing.T) {
				d := newDuty(t)
				d.does["pay"] = pay
				d.crowd(many)
				rows := alarmTable()
				for name := range d.alarms {
					if rows[strings.TrimSuffix(name, "Alarm")] == nil {
						t.Errorf("nothing makes the trouble of %s", name)
					}
				}
				for _, name := range slices.Sorted(maps.Keys(rows)) {
					d.play(name, rows[name], string(raw))
				}
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				t.Logf("%d records: %d MB of memory in use, %d MB taken from the system", many, m.HeapInuse>>20, m.Sys>>20)
			})
		})
	}
}

// play plays an alarm's trouble from begin to end.
func (d *duty) play(name string, a *alarmed, page string) {
	d.Helper()
	looks, does, lines := sectionOf(d.T, page, name)
	alarm := d.alarms[name+"Alarm"]
	fail := func(format string, args ...any) { d.Helper(); d.Errorf(name+": "+format, args...) }
	d.data.Forget(time.Now().Add(-8 * time.Hour))
	begun := time.Now()
	d.logs.Reset()
	d.pass(time.Hour)
	c := &alarmtest.Course{Begun: begun, From: time.Now(), By: time.Now().Add(a.by), Mended: time.Now().Add(a.lasts)}
	if a.every {
		d.each = a.trouble
	} else {
		a.trouble(d)
	}
	look := c.Mended.Add(-30 * time.Minute)
	if a.soon {
		look = time.Now().Add(30 * time.Minute)
	}
	if a.lasts > 15*time.Hour && !a.soon {
		d.pass(2 * time.Hour)
		d.pace = time.Hour
	}
	d.pass(time.Until(look))
	for _, line := range lines {
		if !slices.Contains(a.logs, line) {
			fail("no trouble makes the line %q", line)
		}
	}
	for _, line := range a.logs {
		if !d.logged(line) {
			fail("nobody logs %q", line)
		}
	}
	pks := slices.Clone(a.pks)
	for _, command := range looks {
		d.typed(name, a, command, pks)
	}
	if !a.soon {
		d.pace = step
		d.pass(time.Until(c.Mended))
		c.Mended = time.Now()
	}
	d.each = nil
	if a.mend != nil {
		a.mend(d)
	}
	for _, command := range does {
		d.typed(name, a, command, pks)
		if strings.Contains(command, " PK") && len(pks) > 0 {
			pks = pks[1:]
		}
	}
	d.pass(step)
	if a.after != nil {
		a.after(d)
	}
	if a.ends > 5*time.Hour {
		d.pace = time.Hour
	}
	if a.soon {
		d.pass(time.Until(c.Mended))
	}
	d.pass(a.ends)
	d.pace = step
	c.End = time.Now()
	if w := c.Wrong(alarm, d.data); w != "" {
		fail("%s; its changes: %v", w, alarm.Over(d.data, begun, c.End))
	}
	d.Logf("%s: %v of virtual time", name, time.Since(begun))
	for _, r := range d.records() {
		fail("left behind: %+v", r)
	}
	if n := d.queue.Waiting(); n > 0 || d.queue.Chained() > 0 {
		fail("%d tickets wait, %d were sent by who received one", n, d.queue.Chained())
	}
}

// The runbook's table of the time that an alarm lasts after the remedy
// has each alarm once, with the time that the alarm's test allows.
func TestRunbookSaysHowLongAlarmsLast(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(onCallPage)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(raw), "| alarm | time |\n")
	text, _, _ = strings.Cut(text, "\n\n")
	said := make(map[string]time.Duration)
	for _, line := range strings.Split(text, "\n")[1:] {
		cells := strings.Split(line, "|")
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[1], -1) {
			long, err := time.ParseDuration(strings.Fields(cells[2])[0])
			if err != nil {
				t.Error(err)
			}
			said[m[1]] += long
		}
	}
	want := make(map[string]time.Duration)
	for name, a := range alarmTable() {
		want[name] = a.ends
		if a.ends > 5*time.Hour { // the alarm lasts for a day
			want[name] += a.lasts
		}
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("-want +page:\n%s", diff)
	}
}

// typed runs a command of the page.
func (d *duty) typed(name string, a *alarmed, command string, pks []string) {
	d.Helper()
	want, known := a.says[command]
	if !known {
		d.Errorf("%s: nothing says what %q has to print", name, command)
		return
	}
	pk := ""
	if len(pks) > 0 {
		pk = pks[0]
	}
	words := commandWords(strings.NewReplacer("--result JSON", `--result '"ch_1"'`, "--body JSON", `--body '{"id":1}'`, " STATUS", " 410", " PK", " "+pk, " REF", " "+a.ref,
		"STACK", "orders", "WORKER", "worker", "BUCKET", "failed-bucket", "FILE", "lock.json", " ARN", " arn:aws:sqs:us-east-1:123456789012:tickets-dead").Replace(command))
	if words[0] == "aws" {
		if err := d.aws(words[1:]); err != nil {
			d.Errorf("%s: %s: %v", name, command, err)
		}
		return
	}
	code, out := d.call("y\n", words[1:])
	good := code == 0 || code == exitFound
	if says, fails := strings.CutPrefix(want, "fails: "); fails {
		want, good = says, code == exitFailed
	}
	if !good || !strings.Contains(out, want) {
		d.Errorf("%s: %s: code %d, %s; want %q", name, command, code, out, want)
	}
}
