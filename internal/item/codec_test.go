package item

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/trace"
)

// Whatever a record holds comes back.
func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := anyRecord(t)
		got, err := Decode(encoded(want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}

// encoded is the item of r, whose body lies in the record itself.
func encoded(r *store.Record) Map {
	var v Values
	if r.Response == nil {
		return v.Encode(r, nil)
	}
	body, zipped := packed(r.Response.Body)
	return v.Encode(r, v.Response(r.Response, nil, body, zipped))
}

func anyRecord(t *rapid.T) *store.Record {
	text := rapid.StringMatching(`[ -~äß€]{1,20}`)
	optional := rapid.StringMatching(`([ -~äß€]{1,20})?`)
	second := rapid.Map(rapid.Int64Range(1, 1<<33), func(n int64) time.Time { return time.Unix(n, 0) })
	milli := rapid.Map(rapid.Int64Range(1, 1<<43), time.UnixMilli)
	r := &store.Record{
		PK: text.Draw(t, "pk"), Owner: text.Draw(t, "owner"), Ver: rapid.Int64Min(1).Draw(t, "ver"),
		Fingerprint: text.Draw(t, "fp"), Secret: optional.Draw(t, "secret"), Scheme: optional.Draw(t, "scheme"), ID: text.Draw(t, "id"),
		Tries: rapid.IntRange(0, 100).Draw(t, "tries"), LastErr: optional.Draw(t, "last err"), Blocked: rapid.Bool().Draw(t, "blocked"), DeliveryKey: rapid.Bool().Draw(t, "delivery"),
		Created: milli.Draw(t, "created"), Run: milli.Draw(t, "run"), Route: optional.Draw(t, "route"), Region: optional.Draw(t, "region"), Scope: optional.Draw(t, "scope"),
	}
	r.State = rapid.SampledFrom([]store.State{store.Open, store.Stuck}).Draw(t, "state")
	if rapid.Bool().Draw(t, "first run") {
		r.Run = r.Created // which the item doesn't say
	}
	if rapid.Bool().Draw(t, "leased") {
		r.Lease = milli.Draw(t, "lease")
	}
	spans := rapid.Map(rapid.Int64Range(1, 1<<30), func(n int64) time.Duration { return time.Duration(n) * time.Second })
	r.Retention = rapid.OneOf(rapid.Just(defaults.Retention), spans).Draw(t, "retention")
	if rapid.Bool().Draw(t, "kept") {
		r.Keep = rapid.SampledFrom([]store.Keep{store.KeepOpen, store.KeepJobs}).Draw(t, "keep")
		r.Until = second.Draw(t, "until")
	} else {
		r.Expires = second.Draw(t, "expires")
	}
	for range rapid.IntRange(0, 3).Draw(t, "phases") {
		p := store.Phase{Name: text.Draw(t, "phase"), At: time.Duration(rapid.Int64Range(0, 1<<30).Draw(t, "ms")) * time.Millisecond}
		if rapid.Bool().Draw(t, "has result") {
			p.Result = []byte(optional.Draw(t, "result"))
		}
		if p.Intent = p.Result == nil && rapid.Bool().Draw(t, "intent"); p.Intent || p.Result != nil {
			p.Shape = optional.Draw(t, "shape")
		}
		r.Phases = append(r.Phases, p)
	}
	if rapid.Bool().Draw(t, "counts calls") {
		r.Calls = rapid.MapOfN(text, rapid.IntRange(0, 9), 1, 3).Draw(t, "calls")
	}
	if rapid.Bool().Draw(t, "sends") {
		r.Sent = rapid.MapOfN(text, text, 1, 3).Draw(t, "sent")
	}
	if rapid.Bool().Draw(t, "doubted") {
		r.Doubts, r.DoubtSince = rapid.SliceOfN(text, 1, 3).Draw(t, "doubts"), milli.Draw(t, "doubt")
	}
	for range rapid.IntRange(0, 3).Draw(t, "settled") {
		r.Settled = append(r.Settled, store.Decision{By: optional.Draw(t, "by"), At: milli.Draw(t, "at"), What: text.Draw(t, "what"), From: optional.Draw(t, "from"), To: optional.Draw(t, "to")})
	}
	for range rapid.IntRange(0, 3).Draw(t, "handovers") {
		r.Handovers = append(r.Handovers, store.Handover{
			At: milli.Draw(t, "at"), Kind: text.Draw(t, "how"), Function: optional.Draw(t, "function"), Err: optional.Draw(t, "why"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "jobs") {
		if r.Jobs == nil {
			r.Jobs = map[string]idem.Job{}
		}
		job := idem.Job{Kind: text.Draw(t, "kind"), Args: []byte(optional.Draw(t, "args")), Tries: rapid.IntRange(0, 9).Draw(t, "job tries")}
		if rapid.Bool().Draw(t, "later") {
			job.At, job.Begun = milli.Draw(t, "job at"), rapid.OneOf(rapid.Just(time.Time{}), milli).Draw(t, "job begun")
		}
		r.Jobs[text.Draw(t, "job")] = job
	}
	if rapid.Bool().Draw(t, "done") {
		r.State, r.Retention = store.Done, 0
		r.Response = &idem.Response{Status: rapid.IntRange(200, 599).Draw(t, "status")}
		if n := rapid.IntRange(0, 3).Draw(t, "headers"); n > 0 {
			r.Response.Header = http.Header{}
			for range n {
				r.Response.Header[text.Draw(t, "header")] = rapid.SliceOfN(rapid.OneOf(optional, rapid.Just("caf\xe9")), 1, 3).Draw(t, "values")
			}
		}
		if body := rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "body"); len(body) > 0 {
			r.Response.Body = body
		}
	}
	if r.State == store.Stuck {
		r.WaitSince = milli.Draw(t, "since")
	}
	return r
}

// A record with something in each field comes back.
func TestFullRecordRoundTrip(t *testing.T) {
	t.Parallel()
	want := fullRecord()
	for i, field := range reflect.VisibleFields(reflect.TypeFor[store.Record]()) {
		if elsewhere := []string{"Expires", "WaitSince", "Response", "Overflow", "Seal", "Mark"}; reflect.ValueOf(*want).Field(i).IsZero() && !slices.Contains(elsewhere, field.Name) {
			t.Errorf("the record has nothing in its field %s, which might get lost", field.Name)
		}
	}
	var v Values
	it := v.Encode(want, nil)
	it[AttrRequest] = new(Values).Input(want.Input, nil, want.Input.Body, false)
	got, err := Decode(it)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, o := range []store.Overflow{{Owner: "o", First: 3, Count: 28, Length: MaxStored, Zipped: true, SHA256: [32]byte{1}}, {Length: 7}} {
		d := &Decoder{}
		if back := d.overflow("o", Map{respOverflow: new(Values).overflow(&o)}); d.Err != nil || *back != o {
			t.Errorf("the place of a body comes back as %+v, %v, want %+v", back, d.Err, o)
		}
	}
}

// fullRecord has something in each field that an update may write.
func fullRecord() *store.Record {
	at := time.UnixMilli(1_800_000_000_000)
	return &store.Record{
		PK: "v1##x", ID: "i", Owner: "o", Ver: 2, Fingerprint: "f", Created: at, State: store.Open, Keep: store.KeepOpen, LastErr: "e",
		Handler: store.HandlerID{Function: "fn", Name: "h"}, Scope: "s", Tenant: "t", Blocked: true, Until: at, Retention: 3 * time.Hour,
		Lease: at, Run: at.Add(1e6), Tries: 1, Calls: map[string]int{"pay": 1}, Doubts: []string{"d"}, DoubtSince: at, DoubtUntil: at, Asked: &store.Asked{Phase: "p", At: at, Times: 2, Said: "unknown", Sent: at}, Sent: map[string]string{"pay#1": "x"},
		Phases: []store.Phase{{Name: "p", Result: []byte("1"), At: time.Second}}, Handovers: []store.Handover{{At: at, Kind: "retry", Function: "fn", Err: "e"}},
		Settled: []store.Decision{{By: "jane", At: at, What: "retry", From: "stuck", To: "open", ID: "d"}, {By: "joe", At: at, What: "x"}},
		Jobs: map[string]store.Job{
			"0.0": {Kind: "mail", Args: []byte("1"), Group: "g", Tries: 2, Failed: "bad", At: at, Begun: at, Trace: trace.Context{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
			"0.1": {Kind: "mail", Args: []byte("2")},
		},
		Secret: "sec", Scheme: "sch", Route: "POST /a", Region: "eu", DeliveryKey: true,
		Trace: trace.Context{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		Input: &store.Input{Method: "POST", Path: "/a", Query: "q=1", Header: http.Header{"A": {"1", "2"}, "B": {"3"}, "C": {"caf\xe9"}}, Identity: store.Identity{Kind: "jwt", Subject: "jane"}, Snapshot: []byte("{}"), Body: []byte("body")},
	}
}

// An update writes the attributes that have changed, and no other.
func TestUpdateWritesWhatHasChanged(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*store.Record){
		"": func(*store.Record) {},
		" ": func(r *store.Record) { // those that no update writes
			r.PK, r.ID, r.Owner, r.Secret, r.Scheme, r.Route, r.Region, r.DeliveryKey = "", "", "", "", "", "", "", false
		},
		AttrState:                    func(r *store.Record) { r.State = store.Stuck },
		AttrKeep:                     func(r *store.Record) { r.Keep = store.KeepJobs },
		AttrLastErr:                  func(r *store.Record) { r.LastErr = "" },
		AttrFn:                       func(r *store.Record) { r.Handler.Function = "" },
		AttrHandler:                  func(r *store.Record) { r.Handler.Name = "" },
		AttrScope:                    func(r *store.Record) { r.Scope = "" },
		AttrTenant:                   func(r *store.Record) { r.Tenant = "" },
		AttrBlocked:                  func(r *store.Record) { r.Blocked = false },
		AttrExpires:                  func(r *store.Record) { r.Expires = r.Created },
		AttrUntil:                    func(r *store.Record) { r.Until = r.Until.Add(time.Second) },
		AttrRetain:                   func(r *store.Record) { r.Retention = 24 * time.Hour },
		AttrLease:                    func(r *store.Record) { r.Lease = time.Time{} },
		AttrRun:                      func(r *store.Record) { r.Run = r.Created },
		AttrTries:                    func(r *store.Record) { r.Tries = 0 },
		AttrPhases:                   func(r *store.Record) { r.Phases[0].Result = []byte("2") },
		AttrPhases + " ":             func(r *store.Record) { r.Phases[0].Result = nil },
		AttrPhases + "  ":            func(r *store.Record) { r.Phases[0].Name = "q" },
		AttrPhases + "   ":           func(r *store.Record) { r.Phases[0].Shape = "s" },
		AttrPhases + "    ":          func(r *store.Record) { r.Phases[0].Intent = true },
		AttrTimes:                    func(r *store.Record) { r.Phases[0].At = 0 },
		AttrPhases + " " + AttrTimes: func(r *store.Record) { r.Phases = append(r.Phases, store.Phase{Name: "q", At: 1e9}) },
		AttrCalls:                    func(r *store.Record) { r.Calls = nil },
		AttrDoubts:                   func(r *store.Record) { r.Doubts = []string{"d", "e"} },
		AttrDoubt:                    func(r *store.Record) { r.DoubtSince = r.DoubtSince.Add(1) },
		AttrDoubtEnd:                 func(r *store.Record) { r.DoubtUntil = time.Time{} },
		AttrAsked:                    func(r *store.Record) { r.Asked.Times = 3 },
		AttrAsked + " ":              func(r *store.Record) { r.Asked = nil },
		AttrAsked + "  ":             func(r *store.Record) { r.Asked.Sent = time.Time{} },
		AttrSent:                     func(r *store.Record) { r.Sent = nil },
		AttrHands:                    func(r *store.Record) { r.Handovers[0].Kind = "release" },
	} {
		prev, next := fullRecord(), fullRecord()
		change(next)
		var got []string
		for i := range Fields {
			if f := &Fields[i]; !f.Stays(prev, next) {
				got = append(got, f.Name)
			}
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: written are %q", want, got)
		}
	}
}

// What isn't a record of ours is never guessed at.
func TestCorruptRecord(t *testing.T) {
	t.Parallel()
	whole := func() Map {
		r := &store.Record{
			PK: "v1##x", State: store.Done, Owner: "o", Ver: 2, Fingerprint: "f", ID: "i", Expires: time.Unix(1<<31, 0),
			Created: time.UnixMilli(1), Run: time.UnixMilli(1),
			Response: &idem.Response{Status: 201, Header: http.Header{"Content-Type": {"text/plain"}, "Link": {"a", "b"}}, Body: []byte("x")},
		}
		return encoded(r)
	}
	if _, err := Decode(whole()); err != nil {
		t.Fatalf("the record to spoil is corrupt already: %v", err)
	}
	null := &types.AttributeValueMemberNULL{Value: true}
	resp := func(it Map) Map { return it[AttrResp].(*types.AttributeValueMemberM).Value }
	tests := map[string]struct {
		spoil func(Map)
		want  string // in the error
	}{
		"another layout version": {func(it Map) { it[AttrVersion] = new(Values).Num(12) }, "layout version 12"},
		"no layout version":      {func(it Map) { delete(it, AttrVersion) }, "v is missing"},
		"no state":               {func(it Map) { delete(it, AttrState) }, "st is missing"},
		"unknown state":          {func(it Map) { it[AttrState], it[AttrLease] = new(Values).Str("paused"), new(Values).Num(1) }, `st is "paused"` + "\n"},
		"no owner":               {func(it Map) { delete(it, AttrOwner) }, "owner is missing"},
		"version as text":        {func(it Map) { it[AttrVer] = new(Values).Str("2") }, "ver has type"},
		"version zero":           {func(it Map) { it[AttrVer] = new(Values).Num(0) }, "ver is 0"},
		"no key":                 {func(it Map) { delete(it, AttrPK) }, "pk is missing"},
		"no version":             {func(it Map) { delete(it, AttrVer) }, "ver is missing"},
		"no begin":               {func(it Map) { delete(it, AttrCreated) }, "created_ms is missing"},
		"no fingerprint":         {func(it Map) { delete(it, AttrFP) }, "fp is missing"},
		"no id":                  {func(it Map) { delete(it, AttrID) }, "id is missing"},
		"calls that don't count": {func(it Map) { it[AttrCalls] = &types.AttributeValueMemberM{Value: Map{"pay#": null}} }, "pay# has type"},
		"a hash that isn't one":  {func(it Map) { it[AttrSent] = &types.AttributeValueMemberM{Value: Map{"pay#1": null}} }, "pay#1 has type"},
		"a doubt that isn't one": {func(it Map) { it[AttrDoubts] = &types.AttributeValueMemberL{Value: []Value{null}} }, "doubts[0]"},
		"a doubt without a time": {func(it Map) {
			it[AttrDoubts] = &types.AttributeValueMemberL{Value: []Value{&types.AttributeValueMemberS{Value: "?"}}}
		}, "belong together"},
		"open without a lease":     {func(it Map) { it[AttrState] = new(Values).Str("open") }, "lease_ms is missing"},
		"kept for missing jobs":    {func(it Map) { delete(it, AttrExpires); it[AttrKeep] = new(Values).Str("jobs") }, "jobs is missing"},
		"a number as fingerprint":  {func(it Map) { it[AttrFP] = new(Values).Num(1) }, "fp has type"},
		"a job that isn't one":     {func(it Map) { it[AttrJobs] = &types.AttributeValueMemberM{Value: Map{"0.0": null}} }, "jobs.0.0 has type"},
		"a phase that isn't one":   {func(it Map) { it[AttrPhases] = &types.AttributeValueMemberL{Value: []Value{null}} }, "phases[0]"},
		"a phase of five parts":    {func(it Map) { it[AttrPhases] = phaseOf("a", "1", "!", "{}", "more") }, "phases[0] is not"},
		"a result without a shape": {func(it Map) { it[AttrPhases] = phaseOf("a", "1", "!") }, `phases[0] has mark "!"`},
		"an intent with a result":  {func(it Map) { it[AttrPhases] = phaseOf("a", "1", "?", "{}") }, `phases[0] has mark "?"`},
		"neither keep nor expiry":  {func(it Map) { delete(it, AttrExpires) }, "keep and exp_s"},
		"both keep and expiry":     {func(it Map) { it[AttrKeep] = new(Values).Str("open") }, "keep and exp_s"},
		"done without an answer":   {func(it Map) { delete(it, AttrResp) }, "resp doesn't fit"},
		"open with an answer":      {func(it Map) { it[AttrState], it[AttrLease] = new(Values).Str("open"), new(Values).Num(1) }, "resp doesn't fit"},
		"answer without a status":  {func(it Map) { delete(resp(it), respStatus) }, "s is missing"},
		"header of a wrong type":   {func(it Map) { resp(it)[respHeader] = &types.AttributeValueMemberM{Value: Map{"A": null}} }, "header A has type"},
		"body of a wrong type":     {func(it Map) { resp(it)[respBody] = new(Values).Str("x") }, "b has type"},
		"body over the limit":      {func(it Map) { resp(it)[respZipped], resp(it)[respBody] = Yes, new(Values).Bin(stream(MaxStored+1)) }, "resp.b: more than"},
		"body that isn't deflated": {func(it Map) { resp(it)[respZipped] = &types.AttributeValueMemberBOOL{Value: true} }, "resp.b"},
		"status out of range":      {func(it Map) { resp(it)[respStatus] = new(Values).Num(0) }, "resp.s is 0"},
		"overflow of -1 bytes":     {func(it Map) { resp(it)[respOverflow] = overflowOf(1, -1) }, "1 companions of -1 bytes"},
		"overflow of 29 items":     {func(it Map) { resp(it)[respOverflow] = overflowOf(29, 1) }, "29 companions"},
		"overflow without a hash":  {func(it Map) { resp(it)[respOverflow] = part(overflowOf(1, 1), overSum, nil) }, "d is missing"},
		"overflow with half a hash": {func(it Map) {
			resp(it)[respOverflow] = part(overflowOf(1, 1), overSum, new(Values).Bin(make([]byte, 31)))
		}, "d has 31 bytes"},
		"a job without args":         {func(it Map) { it[AttrJobs] = jobOf(jobArgs) }, "jobs.0.0: a is missing"},
		"a phase's name is a number": {func(it Map) { it[AttrPhases] = listOf(listOf(new(Values).Num(1))) }, "phases[0] has type"},
		"a phase's name is sealed":   {func(it Map) { it[AttrPhases] = listOf(listOf(new(Values).Bin([]byte("a")))) }, "phases[0] has type"},
		"an intent's shape is sealed": {func(it Map) {
			it[AttrPhases] = listOf(listOf(new(Values).Str("a"), new(Values).Bin([]byte("x")), new(Values).Str("?")))
		}, "phases[0] has type"},
		"a time that isn't one":     {func(it Map) { it[AttrTimes] = listOf(new(Values).Str("1")) }, "phase_ms[0] has type"},
		"a time that isn't whole":   {func(it Map) { it[AttrTimes] = listOf(&types.AttributeValueMemberN{Value: "1.5"}) }, "phase_ms[0] is"},
		"a decision that isn't one": {func(it Map) { it[AttrSettled] = listOf(null) }, "settled[0] has type"},
		"a decision of nobody":      {func(it Map) { it[AttrSettled] = listOf(part(decisionOf(), settledBy, nil)) }, "settled[0]: w is missing"},
		"a decision of no time":     {func(it Map) { it[AttrSettled] = listOf(part(decisionOf(), settledAt, nil)) }, "settled[0]: t is missing"},
		"a decision of nothing":     {func(it Map) { it[AttrSettled] = listOf(part(decisionOf(), settledWhat, nil)) }, "settled[0]: d is missing"},
		"a handover that isn't one": {func(it Map) { it[AttrHands] = listOf(null) }, "hands has type"},
		"a look-up of no time":      {func(it Map) { it[AttrAsked] = part(askedOf(), askedAt, nil) }, "asked: t is missing"},
		"a look-up of no phase":     {func(it Map) { it[AttrAsked] = part(askedOf(), askedPhase, nil) }, "asked: p is missing"},
		"a look-up that is a text":  {func(it Map) { it[AttrAsked] = new(Values).Str("x") }, "asked has type"},
		"a handover of no time":     {func(it Map) { it[AttrHands] = listOf(part(handOf(), handAt, nil)) }, "t is missing"},
		"a handover of no kind":     {func(it Map) { it[AttrHands] = listOf(part(handOf(), handKind, nil)) }, "k is missing"},
		"a request without method":  {func(it Map) { it[AttrRequest] = part(requestOf(), reqMethod, nil) }, "req: m is missing"},
		"a request without path":    {func(it Map) { it[AttrRequest] = part(requestOf(), reqPath, nil) }, "req: p is missing"},
		"a caller of one part":      {func(it Map) { it[AttrRequest] = part(requestOf(), reqIdentity, listOf(new(Values).Str("jwt"))) }, "req: i is not"},
		"a caller that is a number": {func(it Map) {
			it[AttrRequest] = part(requestOf(), reqIdentity, listOf(new(Values).Str("jwt"), new(Values).Num(1)))
		}, "req: i is not"},
		"a caller of a number": {func(it Map) {
			it[AttrRequest] = part(requestOf(), reqIdentity, listOf(new(Values).Num(1), new(Values).Str("jane")))
		}, "req: i is not"},
		"a request's body too large": {func(it Map) { it[AttrRequest] = part(requestOf(), respOverflow, overflowOf(1, MaxStored+1)) }, "req: o:"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := whole()
			tt.spoil(it)
			_, err := Decode(it)
			if !errors.Is(err, idem.ErrCorrupt) || !strings.Contains(err.Error()+"\n", tt.want) {
				t.Errorf("got %v, want a corrupt record and %q", err, tt.want)
			}
		})
	}
}

// Items of any shape are decoded or refused, never a panic.
func FuzzDecode(f *testing.F) {
	f.Add("st", "done", byte(0), int64(1))
	f.Add("resp", "x", byte(4), int64(0))
	f.Add("jobs", "0.0", byte(3), int64(0))
	f.Add("phases", "a", byte(2), int64(0))
	f.Add("exp_s", "1e400", byte(1), int64(0))
	f.Fuzz(func(t *testing.T, name, text string, kind byte, n int64) {
		r := &store.Record{PK: "p", State: store.Done, Owner: "o", Ver: 1, Fingerprint: "f", ID: "i", Expires: time.Unix(1<<31, 0), Created: time.UnixMilli(1), Run: time.UnixMilli(1), Response: &idem.Response{Status: 200}}
		it := encoded(r)
		var v Value
		switch kind % 6 {
		case 0:
			v = new(Values).Str(text)
		case 1:
			v = &types.AttributeValueMemberN{Value: text}
		case 2:
			v = &types.AttributeValueMemberL{Value: []Value{new(Values).Str(text), new(Values).Num(n)}}
		case 3:
			v = &types.AttributeValueMemberM{Value: Map{text: new(Values).Num(n)}}
		case 4:
			v = &types.AttributeValueMemberB{Value: []byte(text)}
		case 5:
			v = &types.AttributeValueMemberM{Value: Map{respStatus: new(Values).Num(n), respZipped: &types.AttributeValueMemberBOOL{Value: true}, respBody: &types.AttributeValueMemberB{Value: []byte(text)}}}
		}
		before := maps.Clone(it)
		it[name] = v
		got, err := Decode(it)
		if err != nil && !errors.Is(err, idem.ErrCorrupt) {
			t.Errorf("error %v is not ErrCorrupt", err)
		}
		if err == nil && got.State == store.Done && got.Response == nil {
			t.Errorf("a done record without an answer from %v", before)
		}
	})
}

func overflowOf(count, length int) Value {
	return new(Values).overflow(&store.Overflow{Owner: "o", Count: count, Length: length})
}

// packed compresses every body that has some length, so that both forms are tested.
func packed(body []byte) (out []byte, zipped bool) {
	if len(body) < 150 {
		return body, false
	}
	return Deflate(body), true
}

func phaseOf(parts ...string) Value {
	return &types.AttributeValueMemberL{Value: []Value{new(Values).List(parts)}}
}

// part is m with another part, or without one.
func part(m Value, name string, v Value) Value {
	out := maps.Clone(m.(*types.AttributeValueMemberM).Value)
	if out[name] = v; v == nil {
		delete(out, name)
	}
	return &types.AttributeValueMemberM{Value: out}
}

func listOf(all ...Value) Value { return &types.AttributeValueMemberL{Value: all} }

func jobOf(without string) Value {
	job := new(Values).Job("0.0", store.Job{Kind: "mail", Args: []byte("1")})
	return &types.AttributeValueMemberM{Value: Map{"0.0": part(job, without, nil)}}
}

func decisionOf() Value {
	return new(Values).Decision(store.Decision{By: "jane", At: time.UnixMilli(1), What: "retry"})
}

func askedOf() Value {
	return new(Values).Asked(&store.Asked{Phase: "p", At: time.UnixMilli(1), Times: 1, Said: "made"})
}

func handOf() Value {
	return new(Values).Hands([]store.Handover{{At: time.UnixMilli(1), Kind: "retry"}}).(*types.AttributeValueMemberL).Value[0]
}

func requestOf() Value {
	return new(Values).Input(&store.Input{Method: "POST", Path: "/", Identity: store.Identity{Kind: "jwt", Subject: "jane"}}, nil, nil, false)
}

// A hash is stored in half the space and comes back as the same string; a string that
// isn't lower-case hex is stored as it is.
func TestHashes(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("09af", 16)
	for hash, binary := range map[string]bool{
		sum: true, "00": true, sum + sum + sum: true,
		"": false, sum[1:]: false, strings.ToUpper(sum): false, "xy": false, "0g": false, "0:": false, "0Z": false, "zoë!": false,
	} {
		var v Values
		v.Hash(sum) // there is room for two
		it := Map{AttrFP: v.Hash(hash), "sum": v.Hash(sum)}
		d := Decoder{It: it}
		_, is := it[AttrFP].(*types.AttributeValueMemberB)
		if got := d.hash(AttrFP); is != binary || got != hash || d.hash("sum") != sum || d.Err != nil {
			t.Errorf("%q, stored as %T, came back as %q, and %q, %v", hash, it[AttrFP], got, d.hash("sum"), d.Err)
		}
	}
}

// The table says of which type each attribute is, and names nothing twice.
func TestFieldsHaveTheirKinds(t *testing.T) {
	t.Parallel()
	kinds := make(map[string]string)
	for i := range Fields {
		f := &Fields[i]
		if kinds[f.Name] != "" || f.Kind == "" {
			t.Errorf("%s is there twice, or has no kind", f.Name)
		}
		kinds[f.Name] = f.Kind
	}
	rapid.Check(t, func(t *rapid.T) {
		for name, v := range encoded(anyRecord(t)) {
			kind := strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember")
			if !slices.Contains(strings.Fields(kinds[name]), kind) {
				t.Fatalf("%s is a %s, in the table %q", name, kind, kinds[name])
			}
		}
	})
}

// The page about the item has every field, and names those with sealed contents.
func TestFieldsAreOnThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operate/item.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sealed, _ := strings.Cut(string(page), "## Sealed contents")
	sealed, _, _ = strings.Cut(sealed, "\n## ")
	for i := range Fields {
		f := &Fields[i]
		name := "`" + f.Name + "`"
		if !strings.Contains(string(page), name) {
			t.Errorf("item.md doesn't explain %s", name)
		}
		row := false
		for line := range strings.Lines(sealed) {
			cells := strings.Split(line, "|")
			row = row || len(cells) > 1 && strings.Contains(cells[1], name)
		}
		if row != f.Sealed {
			t.Errorf("%s is sealed: %t, by item.md: %t", name, f.Sealed, row)
		}
	}
}
