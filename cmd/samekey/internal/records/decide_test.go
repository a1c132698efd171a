package records_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/testkit/fakedynamo"
	"github.com/samekey/samekey/internal/testkit/hostiletest"
)

var now = time.UnixMilli(1_800_000_000_000)

// wishes returns a wish of each kind by name.
func wishes() map[string]records.Wish {
	all := map[string]records.Wish{
		"retry": {Do: records.Retry}, "release": {Do: records.Release}, "forget": {Do: records.Forget},
		"forget all": {Do: records.Forget, Loss: idem.Loss{Held: true, Work: true, Jobs: true}}, "redrive": {Do: records.Redrive}, "redrive 0.0": {Do: records.Redrive, Jobs: []string{"0.0"}},
		"cancel": {Do: records.Cancel},
		"erase":  {Do: records.Erase}, "answer": {Do: records.Settle, Settlement: idem.Settlement{Answer: &idem.Response{Status: 410, Body: []byte("gone")}}},
		"result": {Do: records.Settle, Settlement: idem.Settlement{Result: json.RawMessage(`"ch_1"`)}}, "not made": {Do: records.Settle, Settlement: idem.Settlement{NotMade: true}},
		"risk": {Do: records.Settle, Settlement: idem.Settlement{RiskTwice: true}}, "nothing said": {Do: records.Settle},
	}
	for name, w := range all {
		w.By = "jane"
		all[name] = w
	}
	return all
}

// The commands of a reason are those that every record with the reason permits.
func TestVerbsOfReasons(t *testing.T) {
	t.Parallel()
	do := []records.Verb{records.Redrive, records.Retry, records.Settle}
	for _, reason := range state.Reasons {
		of, every := 0, make(map[records.Verb]int)
		for _, rec := range hostiletest.Records("rides", now) {
			if string(state.WaitOf(rec).Reason) != string(reason.Reason) {
				continue
			}
			of++
			may := make(map[records.Verb]bool)
			for _, w := range wishes() {
				if _, err := records.May(rec, now, w); err == nil {
					may[w.Do] = true
				}
			}
			for verb := range may {
				every[verb]++
			}
		}
		var want []string
		for _, verb := range do {
			if of > 0 && every[verb] == of {
				want = append(want, string(verb))
			}
		}
		if diff := cmp.Diff(want, reason.Verbs); diff != "" {
			t.Errorf("%s, of %d records (-allowed +listed):\n%s", string(reason.Reason), of, diff)
		}
	}
}

// Continues depends on where an operation came from.
func TestContinues(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]string{
		"source:arn:aws:sqs:us-east-1:1:mails": "redrive that queue", "tenant:acme|source:mails": "redrive that queue", "jwt:ISS|jane": "the client's next retry", "": "the client's next retry",
	} {
		if got := records.Continues(&store.Record{State: store.Open, Scope: scope}); !strings.Contains(got, want) {
			t.Errorf("an operation of %q: got %q, want %q", scope, got, want)
		}
	}
	delivery := &store.Record{State: store.Open, Scope: "source:mails", DeliveryKey: true}
	if got := records.Continues(delivery); strings.Contains(got, "redrive that queue") || !strings.Contains(got, "a redriven message begins a new operation") {
		t.Errorf("an operation whose key names a delivery: got %q, want no advice to redrive", got)
	}
}

// May permits an operator's wishes by a record's state.
func TestMay(t *testing.T) {
	t.Parallel()
	may := map[string][]string{
		"held":       {"release", "forget all"},
		"abandoned":  {"answer", "release", "forget all"},
		"no request": {"answer", "forget all"},
		"released":   {"answer", "forget all"},
		"blocked":    {"answer", "forget all"},
		"unknown":    {"answer", "result", "not made", "risk", "forget all"},
		"doubts":     {"retry", "answer", "not made", "risk", "forget all"},
		"stuck":      {"retry", "answer", "forget all"},
		"kept":       {"redrive", "redrive 0.0", "forget all"},
		"later":      {"cancel", "forget all"},
		"replayable": {"erase", "forget all"},
		"free":       {"erase"},
	}
	for name, rec := range hostiletest.Records("rides", now) {
		want, known := may[name]
		if !known {
			t.Errorf("%s: nothing is said about it", name)
		}
		before := rec.Clone()
		var got []string
		for which, w := range wishes() {
			plan, err := records.May(rec, now.Add(time.Minute), w)
			switch {
			case err == nil && (len(plan.Says) == 0 && w.Do != records.Erase || plan.PK() != rec.PK):
				t.Errorf("%s of %s: nothing is said of it", which, name)
			case err == nil:
				got = append(got, which)
				hostiletest.Check(t, which+" of "+name, strings.Join(plan.Says, "\n"))
			case err.Error() == "":
				t.Errorf("%s of %s is refused without a reason", which, name)
			}
		}
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s: an operator may %q, want %q", name, got, want)
		}
		if d := cmp.Diff(before, rec); d != "" {
			t.Errorf("%s: deciding has changed it: %s", name, d)
		}
	}
}

// A refusal has a reason, and an allowed plan describes the change.
func TestReasons(t *testing.T) {
	t.Parallel()
	plain := func(state store.State) *store.Record {
		return &store.Record{PK: "v1#rides#h", ID: "ID", State: state, Owner: "o", Ver: 1, Route: "POST /rides", Created: now, Run: now}
	}
	stuck, kept := plain(store.Stuck), plain(store.Done)
	stuck.Phases = []store.Phase{{Name: "charged", Intent: true}}
	doubts := plain(store.Stuck)
	doubts.Doubts = []string{"stripe"}
	kept.Keep, kept.Response, kept.Jobs = store.KeepJobs, &store.Response{Status: 201}, map[string]store.Job{"0.0": {Failed: "no"}, "0.1": {}}
	open := plain(store.Stuck)
	held, released, free := plain(store.Open), plain(store.Open), plain(store.Open)
	held.Lease, released.Keep, free.Expires = now.Add(time.Hour), store.KeepOpen, now.Add(-time.Hour)
	abandoned := plain(store.Open)
	abandoned.Lease, abandoned.Keep = now.Add(-time.Hour), store.KeepOpen
	stored, blocked := *released, *released
	blocked.Blocked = true
	stored.Input = &store.Input{}
	retry := records.Wish{Do: records.Retry, By: "jane"}
	settle := func(s idem.Settlement) records.Wish {
		return records.Wish{Do: records.Settle, By: "jane", Settlement: s}
	}
	for name, tt := range map[string]struct {
		rec  *store.Record
		wish records.Wish
		want string
	}{
		"nobody decides":       {stuck, records.Wish{Do: records.Retry}, "the name of the person"},
		"no such action":       {stuck, records.Wish{Do: "delete", By: "jane"}, `unknown action "delete"`},
		"nothing of the call":  {stuck, records.Wish{Do: records.Retry, By: "jane"}, `the call of phase "charged" is in doubt`},
		"ask, no request":      {stuck, settle(idem.Settlement{Ask: true}), "the request is not stored"},
		"ask, no doubt":        {withRequest(open), settle(idem.Settlement{Ask: true}), "no call in doubt"},
		"contradiction":        {stuck, settle(idem.Settlement{NotMade: true, RiskTwice: true}), "give exactly one of"},
		"no status":            {open, settle(idem.Settlement{Answer: &idem.Response{Status: 99}}), "give a status from 200 to 599"},
		"no status of HTTP":    {open, settle(idem.Settlement{Answer: &idem.Response{Status: 199}}), "give a status from 200 to 599"},
		"no such status":       {open, settle(idem.Settlement{Answer: &idem.Response{Status: 600}}), "give a status from 200 to 599"},
		"nothing said":         {open, settle(idem.Settlement{}), "no decision: give an answer"},
		"a finished operation": {kept, settle(idem.Settlement{Answer: &idem.Response{Status: 200}}), "the operation is done, not stuck"},
		"retry, in flight":     {held, retry, "the operation is not stuck: an attempt holds the record until"},
		"retry, its client's":  {released, retry, "the operation is not stuck: only the client's next retry with the same key continues the operation"},
		"retry, anybody's":     {&stored, retry, "the operation is not stuck: the client's next retry or the completer continues the operation; to end the operation now, use samekey settle --answer"},
		"retry, blocked":       {&blocked, retry, "the operation is blocked, not stuck"},
		"retry, abandoned":     {abandoned, retry, "the operation is not stuck: only the client's next retry with the same key continues the operation"},
		"retry, free":          {free, retry, "the operation is not stuck: the key is free"},
		"not parked":           {kept, records.Wish{Do: records.Redrive, By: "jane", Jobs: []string{"0.1"}}, "nothing to redrive: the record has no parked job, or none of the named jobs is parked"},
		"another operation":    {kept, records.Wish{Do: records.Redrive, By: "jane", Jobs: []string{"OTHER.0.0"}}, "OTHER.0.0 belongs to another operation"},
		"no later job":         {kept, records.Wish{Do: records.Cancel, By: "jane"}, "nothing to cancel: only a later job whose delivery has not begun can be cancelled"},
		"another's later job":  {kept, records.Wish{Do: records.Cancel, By: "jane", Jobs: []string{"OTHER.0.0"}}, "OTHER.0.0 belongs to another operation"},
		"jobs":                 {kept, records.Wish{Do: records.Erase, By: "jane"}, state.ErrJobs.Error()},
		"its losses":           {kept, records.Wish{Do: records.Forget, By: "jane"}, "forget would lose:\n"},
	} {
		if _, err := records.May(tt.rec, now, tt.wish); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if _, err := records.May(kept, now, records.Wish{Do: records.Erase, By: "jane"}); !errors.Is(err, state.ErrJobs) {
		t.Errorf("the reason is %v", err)
	}
	const only = "The operation becomes open: only the client's next retry with the same key continues the operation, since the request is not stored."
	for name, tt := range map[string]struct {
		rec  *store.Record
		wish records.Wish
		says []string
	}{
		"not made": {stuck, settle(idem.Settlement{NotMade: true}), []string{`The call of phase "charged" had no effect. The call is made once more.`, only}},
		"risk":     {stuck, settle(idem.Settlement{RiskTwice: true}), []string{`The call of phase "charged" may have been made. The call is made once more, and may have its effect twice.`, only}},
		"ask": {withRequest(stuck), settle(idem.Settlement{Ask: true}), []string{
			`The call of phase "charged" is looked up at the provider when the completer runs the operation. If the phase has no look-up, the operation becomes stuck again.`,
			"The operation becomes open: the client's next retry or the completer continues the operation.",
		}},
		"ask, without an intent": {withRequest(doubts), settle(idem.Settlement{Ask: true}), []string{
			"When the completer runs the operation, a call in doubt is made again if the provider still knows the call's key. Otherwise the call is looked up at the provider. If its phase has no look-up, the operation becomes stuck again.",
			"The operation becomes open: the client's next retry or the completer continues the operation.",
		}},
		"retry":        {open, retry, []string{only}},
		"the last one": {open, settle(idem.Settlement{Answer: &idem.Response{Status: 599, Body: []byte("gone")}}), []string{"The operation (POST /rides) ends: the client gets 599 from now on, with this body of 4 bytes:", "gone", "The answer is replayed until 2027-01-15 08:00:00 UTC; a later retry runs as a new request.", "This can't be undone."}},
		"release":      {held, records.Wish{Do: records.Release, By: "jane"}, []string{"The attempt's lease ends now instead of at 2027-01-15 09:00:00.000 UTC: the next retry takes the operation over at once.", "Do this only if the attempt is dead. If the attempt still runs, its calls overlap with the retry's calls."}},
		"redrive":      {kept, records.Wish{Do: records.Redrive, By: "jane"}, []string{"Jobs to redrive: 1. Their failures are counted from zero again."}},
		"forget": {kept, records.Wish{Do: records.Forget, By: "jane", Loss: idem.Loss{Work: true, Jobs: true}}, []string{
			"The key becomes free: the next request with the key runs as a new operation. This is lost:", "  the answer 201: a retry runs the request AGAIN, under other derived keys (--lose-work)",
			`  2 undelivered jobs, of the kinds [""] (--lose-jobs); a drain may have delivered 1 of them, or may still deliver them`,
			"  the record's history, when a new request or the table's TTL removes the record", "This can't be undone.",
		}},
	} {
		plan, err := records.May(tt.rec, now, tt.wish)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tt.says, plan.Says); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for said, want := range map[string]string{
		`"ch_1"`: "returned the text ch_1", `7`: "returned the number 7", `"7"`: "returned the text 7", `null`: "returned null", `true`: "returned the value true",
		`{"id":1}`: "returned an object:\n{\n  \"id\": 1\n}", `[1]`: "returned a list:\n[\n  1\n]",
	} {
		plan, err := records.May(stuck, now, settle(idem.Settlement{Result: json.RawMessage(said)}))
		if err != nil {
			t.Errorf("%s: %v", said, err)
			continue
		}
		if got := strings.Join(plan.Says, "\n"); !strings.HasPrefix(got, `The call of phase "charged" `+want) {
			t.Errorf("%s: %s", said, got)
		}
	}
}

// The plan of an answer says until when the answer is replayed, by the retention in the record.
func TestSaysUntilWhenAnAnswerHolds(t *testing.T) {
	t.Parallel()
	jobs := map[string]store.Job{"0.0": {Kind: "mail"}}
	for want, rec := range map[string]store.Record{
		"until 2027-01-16 08:00:00 UTC; a later retry runs as a new request.":                                       {},
		"until 2027-02-14 08:00:00 UTC; a later retry runs as a new request.":                                       {Retention: 720 * time.Hour},
		"until 2027-01-16 08:00:00 UTC, or longer while jobs are undelivered; a later retry runs as a new request.": {Jobs: jobs},
	} {
		rec.PK, rec.State, rec.Owner, rec.Ver, rec.Created, rec.Run = "v1#rides#h", store.Stuck, "o", 1, now, now
		if rec.Retention == 0 {
			rec.Retention = 24 * time.Hour
		}
		plan, err := records.May(&rec, now, records.Wish{Do: records.Settle, By: "jane", Settlement: idem.Settlement{Answer: &idem.Response{Status: 200}}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(plan.Says, "The answer is replayed "+want) {
			t.Errorf("says %q, want %s", plan.Says, want)
		}
	}
}

// Run carries out an allowed plan once, if the record is unchanged, and
// returns what it did. A second run finds a changed record.
func TestRun(t *testing.T) {
	t.Parallel()
	said := map[string]string{
		"answer": "done: the client gets 410 from now on", "result": opened, "not made": opened, "risk": opened, "retry": opened, "release": "released: the client's next retry continues the operation at once",
		"erase": "", "redrive": "jobs redriven: 2; the drain delivers them from the table's stream", "redrive 0.0": "jobs redriven: 1; the drain delivers them from the table's stream", "cancel": "jobs cancelled: 2",
	}
	for _, name := range append(slices.Collect(maps.Keys(hostiletest.Records("rides", now))), "a job") {
		for wish, w := range wishes() {
			if name == "a job" && w.Do != records.Forget {
				continue
			}
			_, s, rec := tableOf(t, name)
			plan, err := records.May(rec, time.Now(), w)
			if err != nil {
				continue
			}
			done, err := plan.Run(t.Context(), s)
			want, known := said[wish]
			switch {
			case !known: // forget
				want = fmt.Sprintf("forgotten: operation %s, by jane", plain.Line(rec.ID))
				for i, job := range slices.Sorted(maps.Keys(rec.Jobs)) {
					if i == 0 {
						want += "; the jobs are removed, but a late drain may still deliver them:"
					}
					want += " " + plain.Line(state.JobID(rec.ID, job))
				}
			case want == opened:
				want += records.Continues(rec)
			}
			if err != nil || done != want {
				t.Errorf("%s of %s: %q, %v, want %q", wish, name, done, err, want)
			}
			got, err := s.Load(t.Context(), rec.PK)
			if err != nil || len(got.Settled) != 1 || got.Settled[0].By != "jane" {
				t.Errorf("%s of %s: the record has %+v, %v", wish, name, got.Settled, err)
			}
			if done, err := plan.Run(t.Context(), s); !errors.Is(err, jobs.ErrMoved) && w.Do != records.Redrive && w.Do != records.Cancel {
				t.Errorf("%s of %s for the second time: %q, %v", wish, name, done, err)
			}
		}
	}
}

// tableOf returns a new table with a record of this kind, claimed a
// minute ago and without decisions.
func tableOf(t *testing.T, name string) (*fakedynamo.Server, *dynamo.Store, *store.Record) {
	t.Helper()
	server := &fakedynamo.Server{}
	s, err := dynamo.New(server, "records")
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now().Add(-time.Minute)
	all := hostiletest.Records("rides", begun)
	all["a job"] = all["kept"].Clone()
	maps.DeleteFunc(all["a job"].Jobs, func(job string, _ store.Job) bool { return job != "0.0" })
	rec := all[name]
	rec.Settled = nil
	if held, err := s.Claim(t.Context(), store.Claim{Next: rec.Clone(), Now: begun}); err != nil || held != nil {
		t.Fatalf("%s: %v, %v", name, held, err)
	}
	return server, s, rec
}

// Run counts only the jobs that it redrove or cancelled, without those that are gone.
func TestRunWithoutSomeJobs(t *testing.T) {
	t.Parallel()
	const none = ": the job is no longer parked"
	for name, tt := range map[string]struct {
		wish   string
		gone   int
		done   string
		err    string
		record string
		broken bool
	}{
		"redrive, refused": {wish: "redrive", done: "jobs redriven: 0; the drain delivers them from the table's stream", err: "dynamo: redrive: the store refuses the call: api error AccessDeniedException: ", record: "kept", broken: true},
		"cancel, refused":  {wish: "cancel", done: "jobs cancelled: 0; jobs not cancelled: 2, because their delivery has begun or somebody else has cancelled them", err: "dynamo: cancel: the store refuses the call: api error AccessDeniedException: ", record: "later", broken: true},
		"redrive one":      {"redrive", 1, "jobs redriven: 1; the drain delivers them from the table's stream", "", "kept", false},
		"redrive none":     {"redrive", 2, "jobs redriven: 0; the drain delivers them from the table's stream", jobs.ErrMoved.Error() + none, "kept", false},
		"cancel one":       {"cancel", 1, "jobs cancelled: 1; jobs not cancelled: 1, because their delivery has begun or somebody else has cancelled them", "", "later", false},
		"cancel none":      {"cancel", 2, "jobs cancelled: 0", jobs.ErrMoved.Error() + ": the job's delivery has begun, or somebody else has cancelled the job", "later", false},
	} {
		server, s, rec := tableOf(t, tt.record)
		plan, err := records.May(rec, time.Now(), wishes()[tt.wish])
		if err != nil {
			t.Fatal(err)
		}
		server.Locked(func(db *fakedynamo.DB) {
			all := db.Item("records", rec.PK)["jobs"].(*types.AttributeValueMemberM).Value
			for _, job := range slices.Sorted(maps.Keys(all))[:tt.gone] {
				delete(all, job)
			}
		})
		if tt.broken {
			if s, err = dynamo.New(refusing{server}, "records"); err != nil {
				t.Fatal(err)
			}
		}
		done, err := plan.Run(t.Context(), s)
		if done != tt.done || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %q, %v, want %q, %q", name, done, err, tt.done, tt.err)
		}
	}
}

// refusing is a table that refuses updates.
type refusing struct{ *fakedynamo.Server }

func (refusing) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDeniedException"}
}

// opened begins the result of a plan that opens an operation.
const opened = "open: "

// An operator may run each command that a story offers.
func TestOfferedCommandsAreAllowed(t *testing.T) {
	t.Parallel()
	offered := 0
	for name, rec := range hostiletest.Records("rides", now) {
		at := now.Add(time.Minute)
		for _, n := range records.Explain(rec, records.StoryOptions{Now: at}).Next {
			words := strings.Fields(n.Command)
			if len(words) == 0 {
				continue
			}
			offered++
			w, known := wishes()[words[1]]
			for flag, wish := range map[string]string{"--answer STATUS": "answer", "--result JSON": "result", "--not-made": "not made", "--risk-twice": "risk"} {
				if words[1] == "settle" && strings.Contains(n.Command, flag) {
					w, known = wishes()[wish]
				}
			}
			if _, err := records.May(rec, at, w); err != nil || !known {
				t.Errorf("%s: %s: %v", name, n.Command, err)
			}
		}
	}
	if offered < 10 {
		t.Errorf("%d commands in all of %q", offered, slices.Sorted(maps.Keys(hostiletest.Records("rides", now))))
	}
}

// The plan shows a result as the program will see it, whatever shape the record has.
func TestResultIsShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ shape, result, want string }{
		{"", `"ch\u005f1"`, "The call of phase \"pay\" returned the text ch_1"},
		{"", `1e3`, "returned the number 1e3\n"},
		{"", `null`, "returned null\n"},
		{"", `true`, "returned the value true\n"},
		{"", `{"id":"ch_1"}`, "returned an object:\n{\n  \"id\": \"ch_1\"\n}\n"},
		{"", `["ch_1"]`, "returned a list:\n[\n  \"ch_1\"\n]\nThe program expects JSON of a type that the record doesn't store.\n"},
		{`{"id":""}`, `{"id":"ch_1"}`, "\nThe program expects {\"id\":\"TEXT\"}.\nThe call is not made again. A wrong result can be corrected"},
	} {
		rec := &store.Record{State: store.Stuck, Phases: []store.Phase{{Name: "pay", Intent: true, Shape: tt.shape}}}
		plan, err := records.May(rec, now, records.Wish{Do: records.Settle, By: "jane", Settlement: idem.Settlement{Result: json.RawMessage(tt.result)}})
		if err != nil || !strings.Contains(strings.Join(plan.Says, "\n"), tt.want) {
			t.Errorf("%s: %v, %v; not %q", tt.result, plan, err, tt.want)
		}
	}
}

// A wish for several records may redrive jobs, or retry operations without a call in doubt.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	all := hostiletest.Records("rides", now)
	all["a doubt"] = all["doubts"].Clone()
	all["a doubt"].Doubts = all["a doubt"].Doubts[:1]
	for name, rec := range all {
		for wish, w := range wishes() {
			_, alone := records.May(rec, now, w)
			w.Many = true
			_, err := records.May(rec, now, w)
			if alone := w.Do != records.Redrive && (w.Do != records.Retry || name == "unknown" || name == "doubts" || name == "a doubt"); alone != (err != nil && strings.HasPrefix(err.Error(), "a decision on several records can't include this record")) {
				t.Errorf("%s of %s with others: %v", wish, name, err)
			}
			may := alone == nil && (w.Do == records.Redrive || w.Do == records.Retry && name == "stuck")
			if (err == nil) != may {
				t.Errorf("%s of %s with others: %v", wish, name, err)
			}
		}
	}
}

// A forget needs exactly the losses that the record has.
func TestLosses(t *testing.T) {
	t.Parallel()
	all, got := hostiletest.Records("rides", now), make(map[string]string)
	jobs := all["no request"].Clone()
	jobs.Phases, jobs.Calls, jobs.Jobs = nil, nil, map[string]store.Job{"0.0": {}}
	all["jobs, no work"] = jobs
	for name, rec := range all {
		got[name] = strings.Join(records.Losses(rec, now), " ")
		w := records.Wish{Do: records.Forget, By: "jane"}
		for _, loss := range records.Losses(rec, now) {
			if _, err := records.May(rec, now, w); err == nil && name != "free" {
				t.Errorf("%s is forgotten without the loss of %s", name, loss)
			}
			w.Loss.Held, w.Loss.Work, w.Loss.Jobs = w.Loss.Held || loss == "attempt", w.Loss.Work || loss == "work", w.Loss.Jobs || loss == "jobs"
		}
		if _, err := records.May(rec, now, w); (err == nil) != (name != "free") {
			t.Errorf("%s: %v", name, err)
		}
	}
	want := map[string]string{
		"jobs, no work": "jobs",
		"held":          "attempt work", "abandoned": "attempt work", "no request": "work", "released": "work", "blocked": "work", "unknown": "work", "doubts": "work", "stuck": "work",
		"kept": "work jobs", "later": "work jobs", "replayable": "work", "free": "attempt work jobs", // free: nobody may forget it
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A later job can be cancelled until its delivery begins, also after its
// time. For a job on its way, the operator reads when the delivery began.
func TestCancelSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	job := func(at time.Duration, begun time.Time) store.Job {
		return store.Job{Kind: "remind", At: now.Add(at), Begun: begun}
	}
	rec := &store.Record{PK: "v1#rides#h", ID: "ID", State: store.Done, Jobs: map[string]store.Job{
		"0.0": job(time.Hour, time.Time{}), "0.1": job(-time.Hour, time.Time{}), "0.2": job(-time.Hour, now), "0.3": {Kind: "mail"},
	}}
	const stays = "ID.0.2 remind is not cancelled: its delivery began at 2027-01-15 08:00:00 UTC, so the job may have arrived"
	for name, tt := range map[string]struct {
		jobs []string
		says []string
		err  string
	}{
		"all": {nil, []string{
			"The delivery of these jobs has not begun. They are removed and never delivered:", "  ID.0.0 remind, for 2027-01-15 09:00:00 UTC", "  ID.0.1 remind, for 2027-01-15 07:00:00 UTC",
			stays, "This can't be undone.",
		}, ""},
		"an overdue job": {[]string{"ID.0.1"}, []string{
			"The delivery of these jobs has not begun. They are removed and never delivered:", "  ID.0.1 remind, for 2027-01-15 07:00:00 UTC", "This can't be undone.",
		}, ""},
		"a job on its way":   {[]string{"0.2"}, nil, "nothing to cancel: only a later job whose delivery has not begun can be cancelled\n" + stays},
		"a job without time": {[]string{"0.3"}, nil, "nothing to cancel: only a later job whose delivery has not begun can be cancelled"},
	} {
		plan, err := records.May(rec, now, records.Wish{Do: records.Cancel, By: "jane", Jobs: tt.jobs})
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tt.says, plan.Says); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// withRequest is a record with a stored request.
func withRequest(r *store.Record) *store.Record {
	r = r.Clone()
	r.Input = &store.Input{Method: "POST"}
	return r
}
