package item

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/seal"
)

// fullRecord has something in each field that an update may write.
func fullRecord() *store.Record {
	at := time.UnixMilli(1_800_000_000_000)
	return &store.Record{
		PK: "v1##x", ID: "i", Owner: "o", Ver: 2, Fingerprint: "f", Created: at, State: store.Open, Keep: store.KeepOpen, LastErr: "e",
		Handler: store.HandlerID{Function: "fn", Name: "h"}, Scope: "s", Tenant: "t", Blocked: true, Until: at, Tombstone: time.Hour, Retention: 3 * time.Hour,
		Lease: at, Run: at.Add(1e6), Tries: 1, Calls: map[string]int{"pay": 1}, Doubts: []string{"d"}, DoubtSince: at, Sent: map[string]string{"pay#1": "x"},
		Phases: []store.Phase{{Name: "p", Result: []byte("1"), At: time.Second}}, Handovers: []store.Handover{{At: at, Kind: "retry", Function: "fn", Err: "e"}},
		Settled: []store.Decision{{By: "jane", At: at, What: "retry", From: "stuck", To: "open", ID: "d"}, {By: "joe", At: at, What: "x"}},
		Jobs: map[string]store.Job{
			"0.0": {Kind: "mail", Args: []byte("1"), Group: "g", Tries: 2, Failed: "bad", At: at, Begun: at, Trace: trace.Context{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
			"0.1": {Kind: "mail", Args: []byte("2")},
		},
		Secret: "sec", Scheme: "sch", Route: "POST /a", Region: "eu", DeliveryKey: true,
		Trace: trace.Context{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		Input: &store.Input{Method: "POST", Path: "/a", Query: "q=1", Route: "POST /a", Header: http.Header{"A": {"1", "2"}, "B": {"3"}, "C": {"caf\xe9"}}, Identity: store.Identity{Kind: "jwt", Subject: "jane"}, Snapshot: []byte("{}"), Body: []byte("body")},
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
		AttrTomb:                     func(r *store.Record) { r.Tombstone = 0 },
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
	untimed := func() *store.Record { r := fullRecord(); r.Phases[0].At = 0; return r }
	next := untimed()
	next.Phases = append(next.Phases, store.Phase{Name: "q"})
	for i := range Fields {
		if f := &Fields[i]; f.Name == AttrTimes && (!f.Stays(untimed(), next) || f.Stays(untimed(), fullRecord()) || f.Stays(fullRecord(), untimed())) {
			t.Error("the times of phases without any are written, or those of others are not")
		}
	}
}

// A record with something in each field comes back, and has nothing that it needn't have.
func TestFullRecordRoundTrip(t *testing.T) {
	t.Parallel()
	want := fullRecord()
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
	parts := func(v Value) []string { return slices.Sorted(maps.Keys(v.(*types.AttributeValueMemberM).Value)) }
	list := func(v Value) []Value { return v.(*types.AttributeValueMemberL).Value }
	kinds := ""
	for _, name := range []string{"A", "B", "C"} {
		kinds += fmt.Sprintf("%T ", it[AttrRequest].(*types.AttributeValueMemberM).Value[reqHeader].(*types.AttributeValueMemberM).Value[name])
	}
	if want := "*types.AttributeValueMemberL *types.AttributeValueMemberS *types.AttributeValueMemberB "; kinds != want || len(list(list(it[AttrPhases])[0])) != 2 {
		t.Errorf("headers are %s, phases %v", kinds, it[AttrPhases])
	}
	bare := &store.Input{Method: "POST", Path: "/"}
	small := &store.Input{Method: "POST", Path: "/", Header: http.Header{"A": {"1"}}, Snapshot: []byte{1}}
	key, err := seal.New(testProvider(t, "a")).Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	box := NewBox(key, want)
	sealed := func(o store.Overflow) Map {
		v := Values{Box: box}
		return v.Response(&store.Response{Status: 200}, &o, []byte("left"), false).(*types.AttributeValueMemberM).Value
	}
	for name, tt := range map[string]struct{ got, want []string }{
		"a job":            {parts(it[AttrJobs].(*types.AttributeValueMemberM).Value["0.1"]), []string{jobArgs, jobKind}},
		"a decision":       {parts(it[AttrSettled].(*types.AttributeValueMemberL).Value[1]), []string{settledWhat, settledAt, settledBy}},
		"a handover":       {parts(new(Values).Hands([]store.Handover{{At: want.Created, Kind: "retry"}}).(*types.AttributeValueMemberL).Value[0]), []string{handAt, handKind}},
		"a request":        {parts(new(Values).Input(bare, nil, nil, false)), []string{reqMethod, reqPath}},
		"a small request":  {parts(new(Values).Input(small, nil, nil, false)), []string{reqHeader, reqMethod, reqPath, reqSnapshot}},
		"a zipped request": {parts(new(Values).Input(bare, nil, []byte("x"), true)), []string{respBody, reqMethod, reqPath, respZipped}},
		"a large request":  {parts(new(Values).Input(bare, &store.Overflow{Owner: "o", Count: 1, Length: 9, Zipped: true}, nil, false)), []string{reqMethod, respOverflow, reqPath}},
		"a place":          {parts(new(Values).overflow(&store.Overflow{Count: 1})), []string{overCount, overFirst, overLength, overOwner, overSum, respZipped}},
		"no place":         {parts(new(Values).overflow(&store.Overflow{})), []string{overCount, overLength, overSum}},
		"a sealed place":   {parts(sealed(store.Overflow{Count: 1})[respOverflow]), []string{overCount, overOwner}},
		"no sealed place":  {parts(sealed(store.Overflow{})[respOverflow]), []string{overCount}},
	} {
		slices.Sort(tt.want)
		if !slices.Equal(tt.got, tt.want) {
			t.Errorf("%s has the parts %q, want %q", name, tt.got, tt.want)
		}
	}
	for _, o := range []store.Overflow{{Owner: "o", First: 3, Count: 2, Length: 9, Zipped: true, SHA256: [32]byte{1}}, {Length: 7}} {
		in := Map{respOverflow: new(Values).overflow(&o)}
		d := &Decoder{}
		if back := d.overflow("o", in); d.Err != nil || *back != o {
			t.Errorf("the place of a body comes back as %+v, %v, want %+v", back, d.Err, o)
		}
		sealed := sealed(o)[sealedContents].(*types.AttributeValueMemberB).Value
		plain, err := box.open(sealed, kindAnswer)
		if err != nil {
			t.Fatal(err)
		}
		if re, back, err := unpackAnswer(plain); err != nil || re.Body != nil || back.Length != o.Length {
			t.Errorf("sealed, it comes back as %+v with the body %q, %v", back, re.Body, err)
		}
	}
}

// Lists read what is shown, by the parts that they need, and nothing that is hidden.
func TestListedPaths(t *testing.T) {
	t.Parallel()
	listed := Listed()
	for _, path := range []string{AttrPK, AttrState, AttrJobs, AttrResp + "." + respStatus, AttrRequest + "." + reqMethod, AttrRequest + "." + reqPath} {
		if !slices.Contains(listed, path) {
			t.Errorf("%s is not listed", path)
		}
	}
	for _, path := range []string{AttrResp, AttrRequest, AttrSecret, AttrCalls, AttrSent, AttrSettled, AttrRegion, AttrTrace, AttrWait, AttrWaitIn, AttrScheme, AttrRetain} {
		if slices.Contains(listed, path) {
			t.Errorf("%s is listed", path)
		}
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(listed)))); n != len(listed) {
		t.Errorf("of %d paths %d differ", len(listed), n)
	}
}

// Numbers are as they are spelt, however many values there are.
func TestNumbers(t *testing.T) {
	t.Parallel()
	var v Values
	for n := int64(-3); n < 1100; n++ {
		if got := v.Num(n).(*types.AttributeValueMemberN).Value; got != strconv.FormatInt(n, 10) {
			t.Errorf("%d is %q", n, got)
		}
	}
	if got := v.Millis(time.Time{}).(*types.AttributeValueMemberN).Value; got != "0" {
		t.Errorf("no time is %q", got)
	}
	if got := v.Placeholder("ver"); got != ":ver" {
		t.Errorf("the placeholder is %q", got)
	}
}
