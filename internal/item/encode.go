package item

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
)

// Values is one block of memory for the values of a call to DynamoDB, since allocating each value
// separately would be most of the call's cost. A Values must not be copied after the first use.
type Values struct {
	Box *Box // seals the contents of the record; nil leaves them plain

	s              [16]types.AttributeValueMemberS
	n              [7]types.AttributeValueMemberN
	m              [2]types.AttributeValueMemberM
	b              [2]types.AttributeValueMemberB
	ss, nn, mm, bb int
	raw            [32]byte // the bytes of a hash
	hashed         int      // how many bytes of raw are in use

	Text strings.Builder // numbers and expressions, one after the other
}

// Str returns s as a value of an item.
func (v *Values) Str(s string) Value {
	m := next(v.s[:], &v.ss)
	m.Value = s
	return m
}

// Num returns n as a value of an item.
func (v *Values) Num(n int64) Value {
	if 0 <= n && n < 100 {
		return v.Digits(strconv.FormatInt(n, 10)) // FormatInt doesn't allocate for small numbers
	}
	if v.Text.Cap() == 0 {
		v.Text.Grow(64)
	}
	var buf [20]byte
	begin := v.Text.Len()
	v.Text.Write(strconv.AppendInt(buf[:0], n, 10))
	return v.Digits(v.Text.String()[begin:])
}

// Digits returns s, a number in decimal, as a value of an item.
func (v *Values) Digits(s string) Value {
	m := next(v.n[:], &v.nn)
	m.Value = s
	return m
}

// Placeholder returns the placeholder of an attribute's value in an expression.
func (v *Values) Placeholder(name string) string {
	begin := v.Text.Len()
	v.Text.WriteByte(':')
	v.Text.WriteString(name)
	return v.Text.String()[begin:]
}

// Map returns a map as a value of an item.
func (v *Values) Map(it Map) Value {
	m := next(v.m[:], &v.mm)
	m.Value = it
	return m
}

// Bin returns b as a value of an item.
func (v *Values) Bin(b []byte) Value {
	m := next(v.b[:], &v.bb)
	m.Value = b
	return m
}

// Hash returns the hash s as a value of an item. If s is lower-case hex, the value is
// the decoded bytes, which need half the space. Otherwise the value is s itself.
func (v *Values) Hash(s string) Value {
	n := len(s) / 2
	if n == 0 || len(s)%2 != 0 {
		return v.Str(s)
	}
	var b []byte
	if end := v.hashed + n; end <= len(v.raw) {
		b, v.hashed = v.raw[v.hashed:end:end], end
	} else {
		b = make([]byte, n)
	}
	for i := range b {
		high, low := digit(s[2*i]), digit(s[2*i+1])
		if high|low > 15 {
			return v.Str(s)
		}
		b[i] = high<<4 | low
	}
	return v.Bin(b)
}

// digit returns the value of the lower-case hex digit c, or 16 if c is any other byte.
func digit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}

// next returns the next unused element of block, and adds 1 to *used. If all elements are
// used, next returns a new one.
func next[T any](block []T, used *int) *T {
	if *used == len(block) {
		return new(T)
	}
	*used++
	return &block[*used-1]
}

// Key returns the key of the item whose partition key is pk.
func (v *Values) Key(pk string) Map { return Map{AttrPK: v.Str(pk)} }

// nothing returns an empty map. It is a function, since a variable would cost time at each cold
// start.
func nothing() Value { return &types.AttributeValueMemberM{Value: Map{}} }

// Secs returns t in whole seconds.
func (v *Values) Secs(t time.Time) Value { return v.Num(t.Unix()) }

// Millis returns t in milliseconds; 0 for the zero time.
func (v *Values) Millis(t time.Time) Value {
	if t.IsZero() {
		return v.Num(0)
	}
	return v.Num(t.UnixMilli())
}

// Encode makes the item of a new record. body is the resp attribute; nil if there is no
// response. The map is made without spare room: the SDK iterates over the map, and the iteration
// visits spare room too.
func (v *Values) Encode(r *store.Record, body Value) Map {
	var values [len(Fields)]Value
	room := 0
	if body != nil || r.Input != nil {
		room = 2
	}
	for i := range Fields {
		if values[i] = Fields[i].Encode(v, r); values[i] != nil {
			room++
		}
	}
	it := make(Map, room)
	for i, value := range values {
		if value != nil {
			it[Fields[i].Name] = value
		}
	}
	if body != nil {
		it[AttrResp] = body
	}
	return it
}

// Yes is the value true.
var Yes Value = &types.AttributeValueMemberBOOL{Value: true}

// Phases returns the committed phases in order.
func (v *Values) Phases(phases []store.Phase) Value {
	list := make([]Value, len(phases))
	for i, p := range phases {
		entry := []Value{v.Str(p.Name)}
		switch {
		case p.Intent:
			entry = append(entry, v.Str(p.Shape), v.Str(phaseIntent))
		case p.Result != nil && v.Box != nil:
			entry = append(entry, bin(v.Box.seal(p.Result, kindResult, resultPart(i, p.Name)...)))
		case p.Result != nil:
			entry = append(entry, v.Str(string(p.Result)))
		}
		if p.Shape != "" && p.Result != nil {
			entry = append(entry, v.Str(phaseSaid), v.Str(p.Shape))
		}
		list[i] = &types.AttributeValueMemberL{Value: entry}
	}
	return &types.AttributeValueMemberL{Value: list}
}

// timed reports whether the time of any phase is known.
func timed(phases []store.Phase) bool {
	return slices.ContainsFunc(phases, func(p store.Phase) bool { return p.At != 0 })
}

// Values.times returns, for each phase, the time from the claim to the phase's commit.
func (v *Values) times(phases []store.Phase) Value {
	list := make([]Value, len(phases))
	for i, p := range phases {
		list[i] = v.Num(p.At.Milliseconds())
	}
	return &types.AttributeValueMemberL{Value: list}
}

// Calls returns the calls attribute: how many calls the committed phases made.
func (v *Values) Calls(calls map[string]int) Value {
	if len(calls) == 0 {
		return nothing()
	}
	m := make(Map, len(calls))
	for call, n := range calls {
		m[call] = v.Num(int64(n))
	}
	return v.Map(m)
}

// Texts returns a map of strings.
func (v *Values) Texts(texts map[string]string) Value {
	m := make(Map, len(texts))
	for name, s := range texts {
		m[name] = v.Str(s)
	}
	return &types.AttributeValueMemberM{Value: m}
}

// List returns a list of strings.
func (v *Values) List(all []string) Value {
	list := make([]Value, len(all))
	for i, s := range all {
		list[i] = v.Str(s)
	}
	return &types.AttributeValueMemberL{Value: list}
}

// Settled returns the decisions of operators.
func (v *Values) Settled(decisions []store.Decision) Value {
	list := make([]Value, len(decisions))
	for i, d := range decisions {
		list[i] = v.Decision(d)
	}
	return &types.AttributeValueMemberL{Value: list}
}

// Decision returns a decision of an operator.
func (v *Values) Decision(d store.Decision) Value {
	m := Map{settledBy: v.Str(d.By), settledAt: v.Millis(d.At), settledWhat: v.Str(d.What)}
	if d.From != "" {
		m[settledFrom] = v.Str(d.From)
	}
	if d.To != "" {
		m[settledTo] = v.Str(d.To)
	}
	if d.ID != "" {
		m[settledID] = v.Str(d.ID)
	}
	return &types.AttributeValueMemberM{Value: m}
}

// Hands returns the handovers: take-overs and releases.
func (v *Values) Hands(all []store.Handover) Value {
	list := make([]Value, len(all))
	for i, h := range all {
		m := Map{handAt: v.Millis(h.At), handKind: v.Str(h.Kind)}
		if h.Function != "" {
			m[handFn] = v.Str(h.Function)
		}
		if h.Err != "" {
			m[handErr] = v.Str(h.Err)
		}
		list[i] = &types.AttributeValueMemberM{Value: m}
	}
	return &types.AttributeValueMemberL{Value: list}
}

// Asked returns the most recent look-up.
func (v *Values) Asked(a *store.Asked) Value {
	m := Map{askedPhase: v.Str(a.Phase), askedAt: v.Millis(a.At), askedTimes: v.Num(int64(a.Times)), askedSaid: v.Str(a.Said)}
	if !a.Sent.IsZero() {
		m[askedSent] = v.Millis(a.Sent)
	}
	return &types.AttributeValueMemberM{Value: m}
}

// Jobs returns the staged jobs by their names.
func (v *Values) Jobs(jobs map[string]store.Job) Value {
	if len(jobs) == 0 {
		return nothing()
	}
	m := make(Map, len(jobs))
	for id, j := range jobs {
		m[id] = v.Job(id, j)
	}
	return v.Map(m)
}

// Job returns the staged job with this name.
func (v *Values) Job(name string, j store.Job) Value {
	m := Map{jobKind: v.Str(j.Kind)}
	if v.Box != nil {
		m[sealedContents] = bin(v.Box.seal(j.Args, kindArgs, argsPart(name, j)...))
	} else {
		m[jobArgs] = v.Str(string(j.Args))
	}
	if j.Group != "" {
		m[jobGroup] = v.Str(j.Group)
	}
	if !j.At.IsZero() {
		m[jobAt] = v.Millis(j.At)
	}
	if !j.Begun.IsZero() {
		m[JobBegun] = v.Millis(j.Begun)
	}
	if j.Tries != 0 {
		m[JobTries] = v.Num(int64(j.Tries))
	}
	if j.Failed != "" {
		m[JobFailed] = v.Str(j.Failed)
	}
	if tp := j.Trace.String(); tp != "" {
		m[jobTrace] = v.Str(tp)
	}
	return &types.AttributeValueMemberM{Value: m}
}

func (v *Values) header(h http.Header) Value {
	m := make(Map, len(h))
	for name, all := range h {
		if len(all) == 1 {
			m[name] = v.field(all[0])
			continue
		}
		list := make([]Value, len(all))
		for i, one := range all {
			list[i] = v.field(one)
		}
		m[name] = &types.AttributeValueMemberL{Value: list}
	}
	return v.Map(m)
}

// Values.field returns s, a value of a header. The result is a string, or bytes if s
// isn't UTF-8, since a string of DynamoDB holds only UTF-8.
func (v *Values) field(s string) Value {
	if !utf8.ValidString(s) {
		return &types.AttributeValueMemberB{Value: []byte(s)}
	}
	return v.Str(s)
}

// Response returns the resp attribute. If over is nil, the attribute contains body, the
// answer's body. Otherwise it contains over, the place of that body, and body is
// ignored. zipped reports whether body is compressed.
func (v *Values) Response(re *store.Response, over *store.Overflow, body []byte, zipped bool) Value {
	if v.Box != nil {
		return v.contents(kindAnswer, answerHead(re, over, zipped), over, body)
	}
	m := Map{respStatus: v.Num(int64(re.Status))}
	if len(re.Header) > 0 {
		m[respHeader] = v.header(re.Header)
	}
	v.body(m, over, body, zipped)
	return v.Map(m)
}

// Input returns the req attribute. The parameters over, body and zipped are those of
// [Values.Response].
func (v *Values) Input(in *store.Input, over *store.Overflow, body []byte, zipped bool) Value {
	if v.Box != nil {
		return v.contents(kindRequest, requestHead(in, over, zipped), over, body)
	}
	m := Map{reqMethod: v.Str(in.Method), reqPath: v.Str(in.Path)}
	if in.Query != "" {
		m[reqQuery] = v.Str(in.Query)
	}
	if len(in.Header) > 0 {
		m[reqHeader] = v.header(in.Header)
	}
	if in.Identity != (store.Identity{}) {
		m[reqIdentity] = &types.AttributeValueMemberL{Value: []Value{v.Str(in.Identity.Kind), v.Str(in.Identity.Subject)}}
	}
	if len(in.Snapshot) > 0 {
		m[reqSnapshot] = &types.AttributeValueMemberB{Value: in.Snapshot}
	}
	v.body(m, over, body, zipped)
	return &types.AttributeValueMemberM{Value: m}
}

// Values.contents returns a sealed request or answer. If the record doesn't hold the
// body, contents also adds the body's place unsealed, with only the number and owner of
// the companions: a condition tests whether there is a place, and people look for the
// companions. The body's length and hash are stored only sealed.
func (v *Values) contents(kind string, h *head, over *store.Overflow, body []byte) Value {
	if over != nil {
		body = nil
	}
	m := Map{sealedContents: bin(v.Box.seal(h.pack(body), kind))}
	if over != nil {
		m[respOverflow] = &types.AttributeValueMemberM{Value: Map{overCount: v.Num(int64(over.Count))}}
		if over.Count > 0 {
			m[respOverflow].(*types.AttributeValueMemberM).Value[overOwner] = v.Str(over.Owner)
		}
	}
	return &types.AttributeValueMemberM{Value: m}
}

// Seal returns the seal attribute.
func (v *Values) Seal(s *Seal) Value {
	return &types.AttributeValueMemberM{Value: Map{sealKey: v.Str(s.keyID), sealAlgorithm: v.Str(s.algorithm), sealWrapped: bin(s.wrapped)}}
}

func bin(b []byte) Value { return &types.AttributeValueMemberB{Value: b} }

func (v *Values) body(m Map, over *store.Overflow, body []byte, zipped bool) {
	switch {
	case over != nil:
		m[respOverflow] = v.overflow(over)
	case len(body) > 0: // an empty body needs no attribute
		m[respBody] = v.Bin(body)
		if zipped {
			m[respZipped] = Yes
		}
	}
}

func (v *Values) overflow(o *store.Overflow) Value {
	m := Map{
		overCount:  v.Num(int64(o.Count)),
		overLength: v.Num(int64(o.Length)),
		overSum:    &types.AttributeValueMemberB{Value: o.SHA256[:]},
	}
	if o.Count > 0 {
		m[overOwner], m[overFirst] = v.Str(o.Owner), v.Num(o.First)
		m[respZipped] = &types.AttributeValueMemberBOOL{Value: o.Zipped}
	}
	return &types.AttributeValueMemberM{Value: m}
}

// Companion returns an item that holds a part of a large body.
func (v *Values) Companion(pk string, end time.Time, chunk []byte) Map {
	return Map{
		AttrPK:      v.Str(pk),
		AttrVersion: v.Digits(Layout),
		AttrExpires: v.Secs(end),
		respBody:    &types.AttributeValueMemberB{Value: chunk},
	}
}
