package item

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/idem/trace"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/state"
)

// The attributes of a record, one item for each key. docs/operate/item.md explains them.
const (
	AttrPK      = "pk"
	AttrVersion = "v"
	AttrState   = "st"
	AttrOwner   = "owner"
	AttrVer     = "ver"
	AttrLease   = "lease_ms"
	AttrExpires = "exp_s"
	AttrKeep    = "keep"
	AttrUntil   = "until_s"
	AttrTomb    = "tomb_s"
	AttrRetain  = "retain_s"
	AttrFP      = "fp"
	AttrSecret  = "fpk"
	AttrScheme  = "fps"
	AttrID      = "id"
	AttrPhases  = "phases"
	AttrCalls   = "calls"
	AttrDoubts  = "doubts"
	AttrDoubt   = "doubt_ms"
	AttrSent    = "sent"
	AttrJobs    = "jobs"
	AttrRequest = "req"
	AttrResp    = "resp"
	AttrTries   = "tries"
	AttrLastErr = "last_err"
	AttrBlocked = "blocked"
	AttrDeliver = "delivery"
	AttrCreated = "created_ms"
	AttrRun     = "run_ms"
	AttrSettled = "settled"
	AttrTimes   = "phase_ms"
	AttrHands   = "hands"
	AttrRegion  = "region"
	AttrRoute   = "route"
	AttrScope   = "scope"
	AttrFn      = "fn"
	AttrHandler = "hn"
	AttrTenant  = "tn"
	AttrWait    = "waits"
	AttrSince   = "wait_ms"
	AttrWaitIn  = "wait_in"
	AttrTrace   = "tp"
	AttrSeal    = "seal"
)

// Field is an attribute of a record. Codec and updates follow from the table of fields.
type Field struct {
	Name   string
	Kind   string   // the types of its value: S, N, B, L, M or BOOL
	Sealed bool     // has contents, which encryption makes binary
	Hidden bool     // not read by those who list records ([Listed])
	Parts  []string // which of its parts they read
	Path   string   // in an expression: the name, or a placeholder for a reserved word
	Arg    string   // the value's placeholder in an update

	// Encode returns the value; nil if the record has none.
	Encode func(*Values, *store.Record) Value
	decode func(*Decoder, *store.Record)
	// Same reports whether two records have the same value. It is nil for a value that
	// no update writes, or that Store.update writes in a way of its own.
	Same func(prev, next *store.Record) bool
}

// Fields are a record's attributes, in the order in which they are decoded and updated. A
// field whose meaning depends on another one comes after it.
var Fields = filled([]Field{
	{Name: AttrVersion, Kind: "N", Encode: func(v *Values, _ *store.Record) Value { return v.Digits(Layout) }, decode: (*Decoder).layout},
	fixed(must(AttrPK, func(r *store.Record) *string { return &r.PK })),
	fixed(must(AttrID, func(r *store.Record) *string { return &r.ID })),
	fixed(must(AttrOwner, func(r *store.Record) *string { return &r.Owner })),
	{
		Name: AttrVer, Kind: "N",
		Encode: func(v *Values, r *store.Record) Value { return v.Num(r.Ver) },
		decode: func(d *Decoder, r *store.Record) { r.Ver = d.Number(AttrVer, true) },
	},
	{
		Name: AttrFP, Kind: "B S", // S if it isn't hex
		Encode: func(v *Values, r *store.Record) Value { return v.Hash(r.Fingerprint) },
		decode: func(d *Decoder, r *store.Record) { r.Fingerprint = d.hash(AttrFP) },
	},
	{
		Name: AttrCreated, Kind: "N",
		Encode: func(v *Values, r *store.Record) Value { return v.Millis(r.Created) },
		decode: func(d *Decoder, r *store.Record) { r.Created = d.Milli(AttrCreated, true) },
	},
	must(AttrState, func(r *store.Record) *string { return (*string)(&r.State) }),
	text(AttrKeep, func(r *store.Record) *string { return (*string)(&r.Keep) }),
	text(AttrLastErr, func(r *store.Record) *string { return &r.LastErr }),
	text(AttrFn, func(r *store.Record) *string { return &r.Handler.Function }),
	text(AttrHandler, func(r *store.Record) *string { return &r.Handler.Name }),
	{
		Name: AttrScope, Kind: "S", Sealed: true, Path: "#scope",
		Encode: (*Values).scope, decode: func(d *Decoder, r *store.Record) { r.Scope = d.scope() },
		Same: func(prev, next *store.Record) bool { return prev.Scope == next.Scope },
	},
	text(AttrTenant, func(r *store.Record) *string { return &r.Tenant }),
	flag(AttrBlocked, func(r *store.Record) *bool { return &r.Blocked }),
	seconds(AttrExpires, func(r *store.Record) *time.Time { return &r.Expires }),
	seconds(AttrUntil, func(r *store.Record) *time.Time { return &r.Until }),
	{
		Name: AttrTomb, Kind: "N",
		Encode: func(v *Values, r *store.Record) Value { return v.optional(int64(r.Tombstone / time.Second)) },
		decode: func(d *Decoder, r *store.Record) {
			r.Tombstone = time.Duration(d.Number(AttrTomb, false)) * time.Second
		},
		Same: func(prev, next *store.Record) bool { return prev.Tombstone == next.Tombstone },
	},
	{
		Name: AttrRetain, Kind: "N", Hidden: true, // absent = the default, or finished
		Encode: func(v *Values, r *store.Record) Value { return v.optional(retained(r)) },
		decode: func(d *Decoder, r *store.Record) {
			if r.Retention = time.Duration(d.Number(AttrRetain, false)) * time.Second; r.Retention == 0 && r.State != store.Done {
				r.Retention = defaults.Retention
			}
		},
		Same: func(prev, next *store.Record) bool { return retained(prev) == retained(next) },
	},
	{
		Name: AttrLease, Kind: "N",
		Encode: func(v *Values, r *store.Record) Value {
			if r.State == store.Done && r.Lease.IsZero() {
				return nil // nobody takes over what has ended
			}
			return v.Millis(r.Lease) // 0 and not absent: "released" is a fact
		},
		decode: func(d *Decoder, r *store.Record) { r.Lease = d.Milli(AttrLease, r.State != store.Done) },
		Same:   func(prev, next *store.Record) bool { return prev.Lease.Equal(next.Lease) },
	},
	{
		Name: AttrRun, Kind: "N", // absent = created_ms
		Encode: func(v *Values, r *store.Record) Value {
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
		Same: func(prev, next *store.Record) bool { return prev.Run.Equal(next.Run) },
	},
	{
		Name: AttrTries, Kind: "N",
		Encode: func(v *Values, r *store.Record) Value { return v.optional(int64(r.Tries)) },
		decode: func(d *Decoder, r *store.Record) { r.Tries = int(d.Number(AttrTries, false)) },
		Same:   func(prev, next *store.Record) bool { return prev.Tries == next.Tries },
	},
	{
		Name: AttrPhases, Kind: "L", Sealed: true,
		Encode: func(v *Values, r *store.Record) Value { return unless(len(r.Phases) == 0, r.Phases, v.Phases) },
		decode: func(d *Decoder, r *store.Record) { r.Phases = d.phases() },
		Same:   func(prev, next *store.Record) bool { return slices.EqualFunc(prev.Phases, next.Phases, SamePhase) },
	},
	{
		Name: AttrTimes, Kind: "L",
		Encode: func(v *Values, r *store.Record) Value { return unless(!timed(r.Phases), r.Phases, v.times) },
		decode: func(d *Decoder, r *store.Record) { d.times(r.Phases) },
		Same: func(prev, next *store.Record) bool {
			untimed := !timed(prev.Phases) && !timed(next.Phases)
			return untimed || slices.EqualFunc(prev.Phases, next.Phases, func(a, b store.Phase) bool { return a.At == b.At })
		},
	},
	{
		Name: AttrCalls, Kind: "M", Hidden: true,
		Encode: func(v *Values, r *store.Record) Value { return unless(len(r.Calls) == 0, r.Calls, v.Calls) },
		decode: func(d *Decoder, r *store.Record) { r.Calls = d.calls() },
		Same:   func(prev, next *store.Record) bool { return maps.Equal(prev.Calls, next.Calls) },
	},
	{
		Name: AttrDoubts, Kind: "L",
		Encode: func(v *Values, r *store.Record) Value { return unless(len(r.Doubts) == 0, r.Doubts, v.List) },
		decode: func(d *Decoder, r *store.Record) { r.Doubts = d.doubts() },
		Same:   func(prev, next *store.Record) bool { return slices.Equal(prev.Doubts, next.Doubts) },
	},
	{
		Name: AttrDoubt, Kind: "N",
		Encode: func(v *Values, r *store.Record) Value { return unless(len(r.Doubts) == 0, r.DoubtSince, v.Millis) },
		decode: func(d *Decoder, r *store.Record) { r.DoubtSince = d.Milli(AttrDoubt, false) },
		Same:   func(prev, next *store.Record) bool { return prev.DoubtSince.Equal(next.DoubtSince) },
	},
	{
		Name: AttrSent, Kind: "M", Hidden: true,
		Encode: func(v *Values, r *store.Record) Value { return unless(len(r.Sent) == 0, r.Sent, v.Texts) },
		decode: func(d *Decoder, r *store.Record) { r.Sent = d.sent() },
		Same:   func(prev, next *store.Record) bool { return maps.Equal(prev.Sent, next.Sent) },
	},
	{
		Name: AttrSettled, Kind: "L", Hidden: true,
		Encode: func(v *Values, r *store.Record) Value { return unless(len(r.Settled) == 0, r.Settled, v.Settled) },
		decode: func(d *Decoder, r *store.Record) { r.Settled = d.settled() },
	},
	{
		Name: AttrHands, Kind: "L",
		Encode: func(v *Values, r *store.Record) Value { return unless(len(r.Handovers) == 0, r.Handovers, v.Hands) },
		decode: func(d *Decoder, r *store.Record) { r.Handovers = d.hands() },
		Same: func(prev, next *store.Record) bool {
			return slices.EqualFunc(prev.Handovers, next.Handovers, store.Handover.Equal)
		},
	},
	{
		Name: AttrJobs, Kind: "M", Sealed: true, // from the first job on; only who forgets the operation removes the map
		Encode: func(v *Values, r *store.Record) Value {
			return unless(len(r.Jobs) == 0 && r.Keep != store.KeepJobs, r.Jobs, v.Jobs) // the write that lets it go counts them
		},
		decode: func(d *Decoder, r *store.Record) { r.Jobs = d.jobs(r.Keep == store.KeepJobs) },
	},
	hidden(fixed(text(AttrSecret, func(r *store.Record) *string { return &r.Secret }))),
	hidden(fixed(text(AttrScheme, func(r *store.Record) *string { return &r.Scheme }))),
	fixed(text(AttrRoute, func(r *store.Record) *string { return &r.Route })),
	hidden(fixed(text(AttrRegion, func(r *store.Record) *string { return &r.Region }))),
	fixed(flag(AttrDeliver, func(r *store.Record) *bool { return &r.DeliveryKey })),
	{
		Name: AttrTrace, Kind: "S", Hidden: true,
		Encode: func(v *Values, r *store.Record) Value { return v.optionalText(r.Trace.String()) },
		decode: func(d *Decoder, r *store.Record) { r.Trace = trace.Parse(d.Text(AttrTrace, false)) },
	},
	// A claim merged with the commit that gave up waits for people.
	{Name: AttrWait, Kind: "S", Hidden: true, Encode: func(v *Values, r *store.Record) Value {
		return v.waiting(r, func(w state.Wait) Value { return v.Str(WaitKey(w.Reason, r.PK)) })
	}},
	{
		Name: AttrSince, Kind: "N",
		Encode: func(v *Values, r *store.Record) Value {
			return v.waiting(r, func(state.Wait) Value { return v.Millis(r.WaitSince) })
		},
		decode: func(d *Decoder, r *store.Record) { r.WaitSince = d.Milli(AttrSince, false) },
	},
	{Name: AttrWaitIn, Kind: "M", Hidden: true, Encode: func(v *Values, r *store.Record) Value { return v.waiting(r, v.WaitIn) }},
	// The store encodes them, since their bodies may lie in companions.
	{Name: AttrResp, Kind: "M", Sealed: true, Parts: []string{respStatus, sealedContents}, decode: (*Decoder).response},
	{Name: AttrRequest, Kind: "M", Sealed: true, Parts: []string{reqMethod, reqPath, sealedContents}, decode: (*Decoder).input},
	{
		Name: AttrSeal, Kind: "M",
		Encode: func(v *Values, r *store.Record) Value {
			if s := SealOf(r); s != nil {
				return v.Seal(s)
			}
			return nil
		},
		decode: (*Decoder).sealing, // after all that may be sealed
	},
})

// retained is the retention in seconds, 0 for the default.
func retained(r *store.Record) int64 {
	if r.Retention == defaults.Retention {
		return 0
	}
	return int64(r.Retention / time.Second)
}

// text is a string; a record whose string is empty lacks it.
func text(name string, at func(*store.Record) *string) Field {
	return Field{
		Name: name, Kind: "S",
		Encode: func(v *Values, r *store.Record) Value { return v.optionalText(*at(r)) },
		decode: func(d *Decoder, r *store.Record) { *at(r) = d.Text(name, false) },
		Same:   func(prev, next *store.Record) bool { return *at(prev) == *at(next) },
	}
}

// must is a string that each record has.
func must(name string, at func(*store.Record) *string) Field {
	f := text(name, at)
	f.Encode = func(v *Values, r *store.Record) Value { return v.Str(*at(r)) }
	f.decode = func(d *Decoder, r *store.Record) { *at(r) = d.Text(name, true) }
	return f
}

// flag is true, or absent.
func flag(name string, at func(*store.Record) *bool) Field {
	return Field{
		Name: name, Kind: "BOOL",
		Encode: func(_ *Values, r *store.Record) Value {
			if *at(r) {
				return Yes
			}
			return nil
		},
		decode: func(d *Decoder, r *store.Record) { *at(r) = d.Flag(name) },
		Same:   func(prev, next *store.Record) bool { return *at(prev) == *at(next) },
	}
}

// seconds is a time in whole seconds; a record lacks the zero time.
func seconds(name string, at func(*store.Record) *time.Time) Field {
	return Field{
		Name: name, Kind: "N",
		Encode: func(v *Values, r *store.Record) Value { return unless(at(r).IsZero(), *at(r), v.Secs) },
		decode: func(d *Decoder, r *store.Record) { *at(r) = d.second(name) },
		Same:   func(prev, next *store.Record) bool { return at(prev).Equal(*at(next)) },
	}
}

// fixed is a field that no update writes.
func fixed(f Field) Field {
	f.Same = nil
	return f
}

func hidden(f Field) Field {
	f.Hidden = true
	return f
}

func filled(fields []Field) []Field {
	for i := range fields {
		f := &fields[i]
		f.Path, f.Arg = cmp.Or(f.Path, f.Name), ":"+f.Name
	}
	return fields
}

// Listed returns the paths that lists of records read.
func Listed() (paths []string) {
	for _, f := range Fields {
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

// unless returns no value if absent, otherwise make's of from.
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

// waiting returns a value about the wait of r; nil if it doesn't wait.
func (v *Values) waiting(r *store.Record, make func(state.Wait) Value) Value {
	w := state.WaitOf(r)
	return unless(w.Reason == state.NoReason, w, make)
}

// SamePhase reports whether two phases are the same, whatever their times.
func SamePhase(a, b store.Phase) bool {
	return a.Name == b.Name && a.Intent == b.Intent && a.Shape == b.Shape && string(a.Result) == string(b.Result) && (a.Result == nil) == (b.Result == nil)
}
