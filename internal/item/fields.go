package item

import (
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
)

// The attributes of a record; docs/operate/item.md explains them.
const (
	AttrPK       = "pk"
	AttrVersion  = "v"
	AttrState    = "st"
	AttrOwner    = "owner"
	AttrVer      = "ver"
	AttrLease    = "lease_ms"
	AttrExpires  = "exp_s"
	AttrKeep     = "keep"
	AttrUntil    = "until_s"
	AttrRetain   = "retain_s"
	AttrFP       = "fp"
	AttrSecret   = "fpk"
	AttrScheme   = "fps"
	AttrID       = "id"
	AttrPhases   = "phases"
	AttrCalls    = "calls"
	AttrMark     = "mark"
	AttrDoubts   = "doubts"
	AttrDoubt    = "doubt_ms"
	AttrSent     = "sent"
	AttrDoubtEnd = "doubt_end_ms"
	AttrAsked    = "asked"
	AttrJobs     = "jobs"
	AttrRequest  = "req"
	AttrResp     = "resp"
	AttrTries    = "tries"
	AttrLastErr  = "last_err"
	AttrBlocked  = "blocked"
	AttrDeliver  = "delivery"
	AttrCreated  = "created_ms"
	AttrRun      = "run_ms"
	AttrSettled  = "settled"
	AttrTimes    = "phase_ms"
	AttrHands    = "hands"
	AttrRegion   = "region"
	AttrRoute    = "route"
	AttrScope    = "scope"
	AttrFn       = "fn"
	AttrHandler  = "hn"
	AttrTenant   = "tn"
	AttrWait     = "waits"
	AttrSince    = "wait_ms"
	AttrWaitIn   = "wait_in"
	AttrTrace    = "tp"
	AttrSeal     = "seal"
)

// Field is an attribute of a record. Encoding, decoding and updates use the table [Fields].
type Field struct {
	Name string

	// Accessors for the common kinds: a text, a flag, or a time in whole seconds. An
	// empty text, a false flag and a zero time are stored as an absent attribute. If
	// must is set, an empty text is stored, too.
	text    func(*store.Record) *string
	flag    func(*store.Record) *bool
	seconds func(*store.Record) *time.Time

	// Functions for other kinds: encode returns the value, or nil if the record has no
	// value. same reports whether two records have the same value. If same is nil, the
	// attribute is never updated, or Store.update has separate code for the attribute.
	encode func(*Values, *store.Record) Value
	decode func(*Decoder, *store.Record)
	same   func(prev, next *store.Record) bool

	must, fixed bool     // must: each record has this text; fixed: Stays is always true (both for common kinds only)
	Sealed      bool     // the value, or a part of it, may be sealed; sealed contents are binary
	Hidden      bool     // lists of records don't read it ([Listed])
	Kind        string   // the types of its value: S, N, B, L, M or BOOL
	Parts       []string // if not nil, lists of records read only these parts of the value
	Path        string   // the placeholder in expressions, if the name is a reserved word
}

// Fields are the attributes of a record, in the order of decoding and updating. A field
// comes after the fields on which it depends.
var Fields = [...]Field{ // only literals, which need no work at a cold start
	{Name: AttrVersion, Kind: "N", encode: func(v *Values, _ *store.Record) Value { return v.Digits(Layout) }, decode: (*Decoder).layout},
	{Name: AttrPK, Kind: "S", must: true, fixed: true, text: func(r *store.Record) *string { return &r.PK }},
	{Name: AttrID, Kind: "S", must: true, fixed: true, text: func(r *store.Record) *string { return &r.ID }},
	{Name: AttrOwner, Kind: "S", must: true, fixed: true, text: func(r *store.Record) *string { return &r.Owner }},
	{
		Name: AttrVer, Kind: "N",
		encode: func(v *Values, r *store.Record) Value { return v.Num(r.Ver) },
		decode: func(d *Decoder, r *store.Record) { r.Ver = d.Number(AttrVer, true) },
	},
	{
		Name: AttrFP, Kind: "B S", // S if the fingerprint isn't hex
		encode: func(v *Values, r *store.Record) Value { return v.Hash(r.Fingerprint) },
		decode: func(d *Decoder, r *store.Record) { r.Fingerprint = d.hash(AttrFP) },
	},
	{
		Name: AttrCreated, Kind: "N",
		encode: func(v *Values, r *store.Record) Value { return v.Millis(r.Created) },
		decode: func(d *Decoder, r *store.Record) { r.Created = d.Milli(AttrCreated, true) },
	},
	{Name: AttrState, Kind: "S", must: true, text: func(r *store.Record) *string { return (*string)(&r.State) }},
	{Name: AttrKeep, Kind: "S", text: func(r *store.Record) *string { return (*string)(&r.Keep) }},
	{Name: AttrLastErr, Kind: "S", text: func(r *store.Record) *string { return &r.LastErr }},
	{Name: AttrFn, Kind: "S", text: func(r *store.Record) *string { return &r.Handler.Function }},
	{Name: AttrHandler, Kind: "S", text: func(r *store.Record) *string { return &r.Handler.Name }},
	{
		Name: AttrScope, Kind: "S", Sealed: true, Path: "#scope",
		encode: (*Values).scope, decode: func(d *Decoder, r *store.Record) { r.Scope = d.scope() },
		same: func(prev, next *store.Record) bool { return prev.Scope == next.Scope },
	},
	{Name: AttrTenant, Kind: "S", text: func(r *store.Record) *string { return &r.Tenant }},
	{Name: AttrBlocked, Kind: "BOOL", flag: func(r *store.Record) *bool { return &r.Blocked }},
	{Name: AttrExpires, Kind: "N", seconds: func(r *store.Record) *time.Time { return &r.Expires }},
	{Name: AttrUntil, Kind: "N", seconds: func(r *store.Record) *time.Time { return &r.Until }},
	{
		Name: AttrRetain, Kind: "N", Hidden: true, // absent if the retention is the default, or if the record is finished
		encode: Retained,
		decode: func(d *Decoder, r *store.Record) {
			if r.Retention = time.Duration(d.Number(AttrRetain, false)) * time.Second; r.Retention == 0 && r.State != store.Done {
				r.Retention = defaults.Retention
			}
		},
		same: func(prev, next *store.Record) bool { return retained(prev) == retained(next) },
	},
	{
		Name: AttrLease, Kind: "N",
		encode: func(v *Values, r *store.Record) Value {
			if r.State == store.Done && r.Lease.IsZero() {
				return nil // no lease, since nobody takes over an ended operation
			}
			return v.Millis(r.Lease) // 0 in a released record; only a finished record may lack the attribute
		},
		decode: func(d *Decoder, r *store.Record) { r.Lease = d.Milli(AttrLease, r.State != store.Done) },
		same:   func(prev, next *store.Record) bool { return prev.Lease.Equal(next.Lease) },
	},
	{
		Name: AttrRun, Kind: "N", // absent = created_ms
		encode: func(v *Values, r *store.Record) Value {
			if r.Run.Equal(r.Created) {
				return nil
			}
			return v.Millis(r.Run)
		},
		decode: func(d *Decoder, r *store.Record) {
			if r.Run = r.Created; d.It[AttrRun] != nil {
				r.Run = d.Milli(AttrRun, false)
			}
		},
		same: func(prev, next *store.Record) bool { return prev.Run.Equal(next.Run) },
	},
	{
		Name: AttrTries, Kind: "N",
		encode: func(v *Values, r *store.Record) Value { return v.optional(int64(r.Tries)) },
		decode: func(d *Decoder, r *store.Record) { r.Tries = int(d.Number(AttrTries, false)) },
		same:   func(prev, next *store.Record) bool { return prev.Tries == next.Tries },
	},
	{
		Name: AttrPhases, Kind: "L", Sealed: true,
		encode: func(v *Values, r *store.Record) Value { return unless(len(r.Phases) == 0, r.Phases, v.Phases) },
		decode: func(d *Decoder, r *store.Record) { r.Phases = d.phases() },
		same:   func(prev, next *store.Record) bool { return slices.EqualFunc(prev.Phases, next.Phases, SamePhase) },
	},
	{
		Name: AttrTimes, Kind: "L",
		encode: func(v *Values, r *store.Record) Value { return unless(!timed(r.Phases), r.Phases, v.times) },
		decode: func(d *Decoder, r *store.Record) { d.times(r.Phases) },
		same: func(prev, next *store.Record) bool {
			untimed := !timed(prev.Phases) && !timed(next.Phases)
			return untimed || slices.EqualFunc(prev.Phases, next.Phases, func(a, b store.Phase) bool { return a.At == b.At })
		},
	},
	{
		Name: AttrCalls, Kind: "M", Hidden: true,
		encode: func(v *Values, r *store.Record) Value { return unless(len(r.Calls) == 0, r.Calls, v.Calls) },
		decode: func(d *Decoder, r *store.Record) { r.Calls = d.calls() },
		same:   func(prev, next *store.Record) bool { return maps.Equal(prev.Calls, next.Calls) },
	},
	{
		Name: AttrMark, Kind: "S",
		encode: func(v *Values, r *store.Record) Value { return v.optionalText(r.Mark) },
		decode: func(d *Decoder, r *store.Record) { r.Mark = d.Text(AttrMark, false) },
		same:   func(prev, next *store.Record) bool { return prev.Mark == next.Mark },
	},
	{
		Name: AttrDoubts, Kind: "L",
		encode: func(v *Values, r *store.Record) Value { return unless(len(r.Doubts) == 0, r.Doubts, v.List) },
		decode: func(d *Decoder, r *store.Record) { r.Doubts = d.doubts() },
		same:   func(prev, next *store.Record) bool { return slices.Equal(prev.Doubts, next.Doubts) },
	},
	{
		Name: AttrDoubt, Kind: "N",
		encode: func(v *Values, r *store.Record) Value { return unless(len(r.Doubts) == 0, r.DoubtSince, v.Millis) },
		decode: func(d *Decoder, r *store.Record) { r.DoubtSince = d.Milli(AttrDoubt, false) },
		same:   func(prev, next *store.Record) bool { return prev.DoubtSince.Equal(next.DoubtSince) },
	},
	{
		Name: AttrSent, Kind: "M", Hidden: true,
		encode: func(v *Values, r *store.Record) Value { return unless(len(r.Sent) == 0, r.Sent, v.Texts) },
		decode: func(d *Decoder, r *store.Record) { r.Sent = d.sent() },
		same:   func(prev, next *store.Record) bool { return maps.Equal(prev.Sent, next.Sent) },
	},
	{
		Name: AttrDoubtEnd, Kind: "N",
		encode: func(v *Values, r *store.Record) Value { return unless(r.DoubtUntil.IsZero(), r.DoubtUntil, v.Millis) },
		decode: func(d *Decoder, r *store.Record) { r.DoubtUntil = d.Milli(AttrDoubtEnd, false) },
		same:   func(prev, next *store.Record) bool { return prev.DoubtUntil.Equal(next.DoubtUntil) },
	},
	{
		Name: AttrAsked, Kind: "M",
		encode: func(v *Values, r *store.Record) Value { return unless(r.Asked == nil, r.Asked, v.Asked) },
		decode: func(d *Decoder, r *store.Record) { r.Asked = d.asked() },
		same:   func(prev, next *store.Record) bool { return prev.Asked.Equal(next.Asked) },
	},
	{
		Name: AttrSettled, Kind: "L", Hidden: true,
		encode: func(v *Values, r *store.Record) Value { return unless(len(r.Settled) == 0, r.Settled, v.Settled) },
		decode: func(d *Decoder, r *store.Record) { r.Settled = d.settled() },
	},
	{
		Name: AttrHands, Kind: "L",
		encode: func(v *Values, r *store.Record) Value { return unless(len(r.Handovers) == 0, r.Handovers, v.Hands) },
		decode: func(d *Decoder, r *store.Record) { r.Handovers = d.hands() },
		same: func(prev, next *store.Record) bool {
			return slices.EqualFunc(prev.Handovers, next.Handovers, store.Handover.Equal)
		},
	},
	{
		Name: AttrJobs, Kind: "M", Sealed: true, // the map is written with the first job, and removed only when the operation is forgotten
		encode: func(v *Values, r *store.Record) Value {
			return unless(len(r.Jobs) == 0 && r.Keep != store.KeepJobs, r.Jobs, v.Jobs) // while Keep is KeepJobs, even an empty map is written, because the write that lets the record go checks the map's size
		},
		decode: func(d *Decoder, r *store.Record) { r.Jobs = d.jobs(r.Keep == store.KeepJobs) },
	},
	{Name: AttrSecret, Kind: "S", fixed: true, Hidden: true, text: func(r *store.Record) *string { return &r.Secret }},
	{Name: AttrScheme, Kind: "S", fixed: true, Hidden: true, text: func(r *store.Record) *string { return &r.Scheme }},
	{Name: AttrRoute, Kind: "S", fixed: true, text: func(r *store.Record) *string { return &r.Route }},
	{Name: AttrRegion, Kind: "S", fixed: true, Hidden: true, text: func(r *store.Record) *string { return &r.Region }},
	{Name: AttrDeliver, Kind: "BOOL", fixed: true, flag: func(r *store.Record) *bool { return &r.DeliveryKey }},
	{
		Name: AttrTrace, Kind: "S", Hidden: true,
		encode: func(v *Values, r *store.Record) Value { return v.optionalText(r.Trace.String()) },
		decode: func(d *Decoder, r *store.Record) { r.Trace = trace.Parse(d.Text(AttrTrace, false)) },
	},
	// The next three fields are for the index of what waits for people. An item without the first
	// two isn't in that index.
	{Name: AttrWait, Kind: "S", Hidden: true, encode: func(v *Values, r *store.Record) Value {
		return v.waiting(r, func(w state.Wait) Value { return v.Str(WaitKey(w.Reason, r.PK)) })
	}},
	{
		Name: AttrSince, Kind: "N",
		encode: func(v *Values, r *store.Record) Value {
			return v.waiting(r, func(state.Wait) Value { return v.Millis(r.WaitSince) })
		},
		decode: func(d *Decoder, r *store.Record) { r.WaitSince = d.Milli(AttrSince, false) },
	},
	{Name: AttrWaitIn, Kind: "M", Hidden: true, encode: func(v *Values, r *store.Record) Value { return v.waiting(r, v.WaitIn) }},
	// the store encodes the next two fields, since their bodies may be in companions
	{Name: AttrResp, Kind: "M", Sealed: true, Parts: []string{respStatus, sealedContents}, decode: (*Decoder).response},
	{Name: AttrRequest, Kind: "M", Sealed: true, Parts: []string{reqMethod, reqPath, sealedContents}, decode: (*Decoder).input},
	{
		Name: AttrSeal, Kind: "M",
		encode: func(v *Values, r *store.Record) Value {
			if s := SealOf(r); s != nil {
				return v.Seal(s)
			}
			return nil
		},
		decode: (*Decoder).sealing, // decoded after all fields that may be sealed
	},
}

// Retained returns the value of a record's retention; nil for the default.
func Retained(v *Values, r *store.Record) Value { return v.optional(retained(r)) }

// retained returns the retention in seconds; 0 for the default.
func retained(r *store.Record) int64 {
	if r.Retention == defaults.Retention {
		return 0
	}
	return int64(r.Retention / time.Second)
}

// Encode returns the field's value; nil if the record has none.
func (f *Field) Encode(v *Values, r *store.Record) Value {
	switch {
	case f.encode != nil:
		return f.encode(v, r)
	case f.text != nil:
		if s := *f.text(r); s != "" || f.must {
			return v.Str(s)
		}
	case f.flag != nil:
		if *f.flag(r) {
			return Yes
		}
	case f.seconds != nil:
		if t := *f.seconds(r); !t.IsZero() {
			return v.Secs(t)
		}
	}
	return nil
}

// Field.read sets this field of r from the item of d.
func (f *Field) read(d *Decoder, r *store.Record) {
	switch {
	case f.decode != nil:
		f.decode(d, r)
	case f.text != nil:
		*f.text(r) = d.Text(f.Name, f.must)
	case f.flag != nil:
		*f.flag(r) = d.Flag(f.Name)
	case f.seconds != nil:
		*f.seconds(r) = d.second(f.Name)
	}
}

// Stays reports whether the general code for updates leaves out this field in an update
// from prev to next. An unchanged attribute is left out, and so is an attribute that is
// never updated or that has separate code.
func (f *Field) Stays(prev, next *store.Record) bool {
	switch {
	case f.same != nil:
		return f.same(prev, next)
	case f.fixed:
	case f.text != nil:
		return *f.text(prev) == *f.text(next)
	case f.flag != nil:
		return *f.flag(prev) == *f.flag(next)
	case f.seconds != nil:
		return f.seconds(prev).Equal(*f.seconds(next))
	}
	return true
}

// Listed returns the paths of the attributes and parts that lists of records read.
func Listed() (paths []string) {
	for i := range Fields {
		f := &Fields[i]
		switch {
		case f.Hidden:
		case f.Parts == nil:
			paths = append(paths, f.Name)
		}
		for _, part := range f.Parts {
			paths = append(paths, f.Name+"."+part)
		}
	}
	return paths
}

// unless returns nil if absent is true, and otherwise make(from).
func unless[T any](absent bool, from T, make func(T) Value) Value {
	if absent {
		return nil
	}
	return make(from)
}

func (v *Values) optional(n int64) Value { return unless(n == 0, n, v.Num) }

func (v *Values) optionalText(s string) Value { return unless(s == "", s, v.Str) }

func (v *Values) scope(r *store.Record) Value {
	switch {
	case r.Scope == "":
		return nil
	case v.Box != nil:
		return bin(v.Box.seal([]byte(r.Scope), kindScope))
	}
	return v.Str(r.Scope)
}

// Values.waiting returns nil if the record r doesn't wait for people, and otherwise
// make(w) for its wait w.
func (v *Values) waiting(r *store.Record, make func(state.Wait) Value) Value {
	w := state.WaitOf(r)
	return unless(w.Reason == state.NoReason, w, make)
}

// SamePhase reports whether two phases are equal except for their times.
func SamePhase(a, b store.Phase) bool {
	return a.Name == b.Name && a.Intent == b.Intent && a.Shape == b.Shape && string(a.Result) == string(b.Result) && (a.Result == nil) == (b.Result == nil)
}
