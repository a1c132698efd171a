package item

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/trace"
)

const (
	maxCompanions        = 28 // enough for 10 MB, even if compression makes a body larger
	minStatus, maxStatus = 100, 999

	// MaxStored is the largest stored body, in bytes. Lambda's own limits are lower.
	MaxStored = defaults.MaxStoredRequest
)

// Decode reads an item, and leaves sealed contents closed: [Unseal] opens them. An item is corrupt
// if a required attribute is missing, or if any attribute has the wrong type. Decode never guesses
// a value, since a wrong guess could run a request again.
func Decode(it Map) (*store.Record, error) { return decode(Decoder{It: it}) }

// Glance is like [Decode], but leaves out the bodies of answer and request. It is for programs
// that read many items, since an item of a few KB may hold a compressed body of megabytes.
func Glance(it Map) (*store.Record, error) { return decode(Decoder{It: it, bodiless: true}) }

// Read reads an item of the table as a record, for tools that scan the table or read
// its stream. It returns nil for an item that is no record: a part of a large body, the
// position of a sweep, or an item of another program. If Read doesn't understand an
// item, for example because of another layout, the error matches [store.ErrCorrupt].
// Read reads no body, and sealed contents stay closed. The record shares byte slices
// with the item.
func Read(it Map) (*store.Record, error) {
	_, versioned := it[AttrVersion]
	_, stated := it[AttrState]
	if PK(it) == "" || !versioned || !stated {
		return nil, nil
	}
	return Glance(it)
}

func decode(d Decoder) (*store.Record, error) {
	whole := new(struct { // in one allocation
		record  store.Record
		decoder Decoder
		room    room
	})
	r, in := &whole.record, &whole.decoder
	*in = d
	in.room = &whole.room
	for i := range Fields {
		if in.Err == nil {
			Fields[i].read(in, r)
		}
	}
	in.check(r)
	if in.Err != nil {
		return nil, fmt.Errorf("dynamo: %w: %w", store.ErrCorrupt, in.Err)
	}
	return r, nil
}

// room is the memory for a decoded answer. It is allocated together with the record.
type room struct {
	response store.Response
	values   [4]string // values of the headers
}

// Decoder.layout refuses a record of an unknown layout.
func (d *Decoder) layout(*store.Record) {
	if v := strconv.FormatInt(d.Number(AttrVersion, true), 10); v != Layout {
		d.fail("layout version %s is not known to this program", v)
	}
}

// Decoder reads the attributes of an item, and remembers the first error.
type Decoder struct {
	It  Map
	Err error

	bodiless bool  // see Glance
	room     *room // nil in the decoder of a nested map
	closed   closed
}

func (d *Decoder) fail(format string, args ...any) {
	if d.Err == nil {
		d.Err = fmt.Errorf(format, args...)
	}
}

// Decoder.check tests the rules that every writer follows. After an earlier error it
// does nothing.
func (d *Decoder) check(r *store.Record) {
	switch {
	case r.State != store.Open && r.State != store.Done && r.State != store.Stuck:
		d.fail("st is %q", r.State)
	case r.Ver < 1:
		d.fail("ver is %d", r.Ver)
	case r.Response != nil && d.closed.answer == nil && (r.Response.Status < minStatus || r.Response.Status > maxStatus):
		d.fail("resp.s is %d", r.Response.Status)
	case (r.State == store.Done) != (r.Response != nil):
		d.fail("st is %q, but resp doesn't fit", r.State)
	case (len(r.Doubts) == 0) != r.DoubtSince.IsZero():
		d.fail("doubts and doubt_ms belong together")
	case (r.Keep == store.KeepOpen || r.Keep == store.KeepJobs) != r.Expires.IsZero():
		d.fail("keep and exp_s don't fit: keep is %q", r.Keep)
	}
}

func as[T Value](d *Decoder, it Map, name string, must bool) (v T) {
	raw, ok := it[name]
	if !ok {
		if must {
			d.fail("%s is missing", name)
		}
		return v
	}
	if v, ok = raw.(T); !ok {
		d.fail("%s has type %T", name, raw)
	}
	return v
}

// Text returns a string attribute; "" if it is missing.
func (d *Decoder) Text(name string, must bool) string {
	if v := as[*types.AttributeValueMemberS](d, d.It, name, must); v != nil {
		return v.Value
	}
	return ""
}

// Decoder.hash returns the text that was given to [Values.Hash], whichever form Hash
// chose for it.
func (d *Decoder) hash(name string) string {
	b, binary := d.It[name].(*types.AttributeValueMemberB)
	if !binary {
		return d.Text(name, true)
	}
	var buf [2 * sha256.Size]byte
	return string(hex.AppendEncode(buf[:0], b.Value))
}

// Number returns a whole number; 0 if it is missing.
func (d *Decoder) Number(name string, must bool) int64 {
	return d.numberIn(d.It, name, must)
}

func (d *Decoder) numberIn(it Map, name string, must bool) int64 {
	v := as[*types.AttributeValueMemberN](d, it, name, must)
	if v == nil {
		return 0
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	if err != nil {
		d.fail("%s is not a whole number", name)
	}
	return n
}

// Flag returns a Boolean attribute; false if it is missing.
func (d *Decoder) Flag(name string) bool {
	b := as[*types.AttributeValueMemberBOOL](d, d.It, name, false)
	return b != nil && b.Value
}

// Milli returns a time in milliseconds; the zero time if it is missing or 0.
func (d *Decoder) Milli(name string, must bool) time.Time {
	if n := d.Number(name, must); n != 0 {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

func (d *Decoder) second(name string) time.Time {
	if _, ok := d.It[name]; !ok {
		return time.Time{}
	}
	return time.Unix(d.Number(name, true), 0)
}

func (d *Decoder) phases() []store.Phase {
	list := as[*types.AttributeValueMemberL](d, d.It, AttrPhases, false)
	if list == nil {
		return nil
	}
	phases := make([]store.Phase, len(list.Value))
	for i, entry := range list.Value {
		pair, ok := entry.(*types.AttributeValueMemberL)
		if !ok || len(pair.Value) < 1 || len(pair.Value) > 4 {
			d.fail("phases[%d] is not [name, result]", i)
			return nil
		}
		for j, part := range pair.Value {
			if b, sealed := part.(*types.AttributeValueMemberB); sealed && j == 1 && len(pair.Value) != 3 {
				if d.closed.results == nil {
					d.closed.results = make(map[int][]byte)
				}
				d.closed.results[i] = notNil(b.Value)
				phases[i].Result = []byte{}
				continue
			}
			s, ok := part.(*types.AttributeValueMemberS)
			switch {
			case !ok:
				d.fail("phases[%d] has type %T", i, part)
			case j == 0:
				phases[i].Name = s.Value
			case j == 1:
				phases[i].Result = []byte(s.Value)
			case j == 3:
				phases[i].Shape = s.Value
			case s.Value == phaseSaid && len(pair.Value) == 4:
			case s.Value != phaseIntent || len(pair.Value) != 3:
				d.fail("phases[%d] has mark %q", i, s.Value)
			default:
				phases[i].Shape, phases[i].Result, phases[i].Intent = string(phases[i].Result), nil, true
			}
		}
	}
	return phases
}

func (d *Decoder) calls() map[string]int {
	m := as[*types.AttributeValueMemberM](d, d.It, AttrCalls, false)
	if m == nil {
		return nil
	}
	calls := make(map[string]int, len(m.Value))
	for call := range m.Value {
		calls[call] = int(d.numberIn(m.Value, call, true))
	}
	return calls
}

func (d *Decoder) sent() map[string]string {
	m := as[*types.AttributeValueMemberM](d, d.It, AttrSent, false)
	if m == nil {
		return nil
	}
	sent, in := make(map[string]string, len(m.Value)), Decoder{It: m.Value}
	for call := range m.Value {
		sent[call] = in.Text(call, true)
	}
	if in.Err != nil {
		d.fail("sent: %w", in.Err)
	}
	return sent
}

func (d *Decoder) scope() string {
	if b, sealed := d.It[AttrScope].(*types.AttributeValueMemberB); sealed {
		d.closed.scope = notNil(b.Value)
		return ""
	}
	return d.Text(AttrScope, false)
}

func (d *Decoder) doubts() []string {
	list := as[*types.AttributeValueMemberL](d, d.It, AttrDoubts, false)
	if list == nil {
		return nil
	}
	var doubts []string
	for i, raw := range list.Value {
		s, ok := raw.(*types.AttributeValueMemberS)
		if !ok {
			d.fail("doubts[%d] has type %T", i, raw)
			return nil
		}
		doubts = append(doubts, s.Value)
	}
	return doubts
}

func (d *Decoder) settled() []store.Decision {
	list := as[*types.AttributeValueMemberL](d, d.It, AttrSettled, false)
	if list == nil {
		return nil
	}
	decisions := make([]store.Decision, len(list.Value))
	for i, raw := range list.Value {
		entry, ok := raw.(*types.AttributeValueMemberM)
		if !ok {
			d.fail("settled[%d] has type %T", i, raw)
			return nil
		}
		one := Decoder{It: entry.Value}
		decisions[i] = store.Decision{By: one.Text(settledBy, true), At: one.Milli(settledAt, true), What: one.Text(settledWhat, true), From: one.Text(settledFrom, false), To: one.Text(settledTo, false), ID: one.Text(settledID, false)}
		if one.Err != nil {
			d.fail("settled[%d]: %w", i, one.Err)
		}
	}
	return decisions
}

// Decoder.times reads the commit time of each phase.
func (d *Decoder) times(phases []store.Phase) {
	list := as[*types.AttributeValueMemberL](d, d.It, AttrTimes, false)
	if list == nil {
		return
	}
	for i, raw := range list.Value {
		n, ok := raw.(*types.AttributeValueMemberN)
		if !ok {
			d.fail("%s[%d] has type %T", AttrTimes, i, raw)
			return
		}
		ms, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || ms < 0 {
			d.fail("%s[%d] is %q", AttrTimes, i, n.Value)
		}
		if i < len(phases) {
			phases[i].At = time.Duration(ms) * time.Millisecond
		}
	}
}

func (d *Decoder) hands() (all []store.Handover) {
	d.Maps(AttrHands, func(one *Decoder) {
		all = append(all, store.Handover{
			At: one.Milli(handAt, true), Kind: one.Text(handKind, true), Function: one.Text(handFn, false), Err: one.Text(handErr, false),
		})
	})
	return all
}

func (d *Decoder) asked() *store.Asked {
	m := as[*types.AttributeValueMemberM](d, d.It, AttrAsked, false)
	if m == nil {
		return nil
	}
	one := Decoder{It: m.Value}
	a := &store.Asked{
		Phase: one.Text(askedPhase, true), At: one.Milli(askedAt, true), Times: int(one.Number(askedTimes, true)),
		Said: one.Text(askedSaid, true), Sent: one.Milli(askedSent, false),
	}
	if one.Err != nil {
		d.fail("asked: %w", one.Err)
	}
	return a
}

func (d *Decoder) jobs(must bool) map[string]store.Job {
	m := as[*types.AttributeValueMemberM](d, d.It, AttrJobs, must)
	if m == nil || len(m.Value) == 0 {
		return nil
	}
	jobs := make(map[string]store.Job, len(m.Value))
	for id, raw := range m.Value {
		entry, ok := raw.(*types.AttributeValueMemberM)
		if !ok {
			d.fail("jobs.%s has type %T", id, raw)
			return nil
		}
		j := Decoder{It: entry.Value}
		job := store.Job{
			Kind: j.Text(jobKind, true), Group: j.Text(jobGroup, false), At: j.Milli(jobAt, false), Begun: j.Milli(JobBegun, false),
			Tries: int(j.Number(JobTries, false)), Failed: j.Text(JobFailed, false), Trace: trace.Parse(j.Text(jobTrace, false)),
		}
		if x := j.sealedPart(entry.Value); x != nil {
			if d.closed.args == nil {
				d.closed.args = make(map[string][]byte)
			}
			d.closed.args[id] = x
		} else {
			job.Args = []byte(j.Text(jobArgs, true))
		}
		jobs[id] = job
		if j.Err != nil {
			d.fail("jobs.%s: %w", id, j.Err)
		}
	}
	return jobs
}

// Decoder.response reads the answer. The values of headers are stored in d.room as long
// as it has space.
func (d *Decoder) response(r *store.Record) {
	m := as[*types.AttributeValueMemberM](d, d.It, AttrResp, false)
	if m == nil {
		return
	}
	re := &d.room.response
	r.Response = re
	if d.closed.answer = d.sealedPart(m.Value); d.closed.answer != nil {
		return
	}
	re.Status, re.Header = int(d.numberIn(m.Value, respStatus, true)), d.header(m.Value, d.room.values[:0])
	re.Body = d.body("resp.b", m.Value)
	r.Overflow = d.overflow("resp.o", m.Value)
}

// Decoder.body reads a body that is stored in the record itself.
func (d *Decoder) body(path string, it Map) []byte {
	b := as[*types.AttributeValueMemberB](d, it, respBody, false)
	if b == nil || d.bodiless {
		return nil
	}
	if z := as[*types.AttributeValueMemberBOOL](d, it, respZipped, false); z == nil || !z.Value {
		return b.Value
	}
	body, err := Inflate(b.Value, MaxStored)
	if err != nil {
		d.fail("%s: %w", path, err)
	}
	return body
}

// Decoder.overflow reads the place of a large body.
func (d *Decoder) overflow(path string, it Map) *store.Overflow {
	m := as[*types.AttributeValueMemberM](d, it, respOverflow, false)
	if m == nil {
		return nil
	}
	over := Decoder{It: m.Value}
	o := &store.Overflow{
		Owner:  over.Text(overOwner, false),
		First:  over.Number(overFirst, false),
		Count:  int(over.Number(overCount, true)),
		Length: int(over.Number(overLength, true)),
	}
	if z := as[*types.AttributeValueMemberBOOL](&over, m.Value, respZipped, false); z != nil {
		o.Zipped = z.Value
	}
	if sum := as[*types.AttributeValueMemberB](&over, m.Value, overSum, true); sum != nil {
		if len(sum.Value) != sha256.Size {
			over.fail("d has %d bytes", len(sum.Value))
		}
		copy(o.SHA256[:], sum.Value)
	}
	if !sound(o) {
		over.fail("%d companions of %d bytes", o.Count, o.Length)
	}
	if over.Err != nil {
		d.fail("%s: %w", path, over.Err)
	}
	return o
}

// sound reports whether the place of a body is valid.
func sound(o *store.Overflow) bool {
	return o.Count >= 0 && o.Count <= maxCompanions && o.Length >= 0 && (o.Count == 0 || o.Length <= MaxStored)
}

func (d *Decoder) header(it Map, all []string) http.Header {
	m := as[*types.AttributeValueMemberM](d, it, respHeader, false)
	if m == nil {
		return nil
	}
	h := make(http.Header, len(m.Value))
	for name, raw := range m.Value {
		begin, list := len(all), []Value{raw}
		if l, ok := raw.(*types.AttributeValueMemberL); ok {
			list = l.Value
		}
		for _, entry := range list {
			switch v := entry.(type) {
			case *types.AttributeValueMemberS:
				all = append(all, v.Value)
			case *types.AttributeValueMemberB:
				all = append(all, string(v.Value))
			default:
				d.fail("header %s has type %T", name, entry)
				return nil
			}
		}
		if len(list) > 0 {
			h[name] = all[begin:len(all):len(all)]
		}
	}
	return h
}

func (d *Decoder) input(r *store.Record) {
	m := as[*types.AttributeValueMemberM](d, d.It, AttrRequest, false)
	if m == nil {
		return
	}
	if d.closed.request = d.sealedPart(m.Value); d.closed.request != nil {
		r.Input = &store.Input{}
		return
	}
	req := Decoder{It: m.Value, bodiless: d.bodiless}
	in := &store.Input{
		Method: req.Text(reqMethod, true), Path: req.Text(reqPath, true), Query: req.Text(reqQuery, false),
		Header: req.header(m.Value, nil), Body: req.body("b", m.Value), Overflow: req.overflow("o", m.Value),
	}
	if d := as[*types.AttributeValueMemberB](&req, m.Value, reqSnapshot, false); d != nil {
		in.Snapshot = d.Value
	}
	if l := as[*types.AttributeValueMemberL](&req, m.Value, reqIdentity, false); l != nil {
		in.Identity = req.identity(l.Value)
	}
	if req.Err != nil {
		d.fail("req: %w", req.Err)
	}
	r.Input = in
}

func (d *Decoder) identity(pair []Value) (id store.Identity) {
	if len(pair) == 2 {
		kind, ok1 := pair[0].(*types.AttributeValueMemberS)
		subject, ok2 := pair[1].(*types.AttributeValueMemberS)
		if ok1 && ok2 {
			return store.Identity{Kind: kind.Value, Subject: subject.Value}
		}
	}
	d.fail("i is not [kind, subject]")
	return id
}

// Chunk returns the part of a body that a companion holds; false if there is none.
func Chunk(companion Map) ([]byte, bool) {
	b, ok := companion[respBody].(*types.AttributeValueMemberB)
	if !ok {
		return nil, false
	}
	return b.Value, true
}

// Maps applies fn to each map in the list attribute name. If the attribute is missing,
// Maps does nothing.
func (d *Decoder) Maps(name string, fn func(*Decoder)) {
	list := as[*types.AttributeValueMemberL](d, d.It, name, false)
	if list == nil {
		return
	}
	for _, raw := range list.Value {
		entry, ok := raw.(*types.AttributeValueMemberM)
		if !ok {
			d.fail("%s has type %T", name, raw)
			return
		}
		one := Decoder{It: entry.Value}
		fn(&one)
		d.Err = errors.Join(d.Err, one.Err)
	}
}
