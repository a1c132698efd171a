package dynamo

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
)

type (
	item  = map[string]types.AttributeValue
	value = types.AttributeValue
)

// values makes the strings and numbers of one request: out of one block, since
// an allocation for each is most of what a request would cost.
type values struct {
	s      [16]types.AttributeValueMemberS
	n      [12]types.AttributeValueMemberN
	ss, nn int
}

func (v *values) str(s string) value {
	if v.ss == len(v.s) {
		return &types.AttributeValueMemberS{Value: s}
	}
	v.ss++
	v.s[v.ss-1].Value = s
	return &v.s[v.ss-1]
}

func (v *values) num(n int64) value { return v.digits(strconv.FormatInt(n, 10)) }

func (v *values) digits(s string) value {
	if v.nn == len(v.n) {
		return &types.AttributeValueMemberN{Value: s}
	}
	v.nn++
	v.n[v.nn-1].Value = s
	return &v.n[v.nn-1]
}

func (v *values) secs(t time.Time) value { return v.num(t.Unix()) }

func (v *values) millis(t time.Time) value {
	if t.IsZero() {
		return v.num(0)
	}
	return v.num(t.UnixMilli())
}

// encode makes the item of a new record. body is what encodeBody made of its
// response, nil without one.
func (v *values) encode(r *store.Record, body value) item {
	it := make(item, 20)
	it[attrPK] = v.str(r.PK)
	it[attrVersion] = v.digits(layoutVersion)
	it[attrState] = v.str(string(r.State))
	it[attrOwner] = v.str(r.Owner)
	it[attrVer] = v.num(r.Ver)
	it[attrLease] = v.millis(r.Lease)
	it[attrFP] = v.str(r.Fingerprint)
	it[attrID] = v.str(r.ID)
	it[attrJobs] = v.jobs(r.Jobs)
	it[attrCreated] = v.millis(r.Created)
	it[attrRun] = it[attrCreated]
	if !r.Run.Equal(r.Created) {
		it[attrRun] = v.millis(r.Run)
	}
	optional := func(name, s string) {
		if s != "" {
			it[name] = v.str(s)
		}
	}
	optional(attrKeep, string(r.Keep))
	optional(attrCred, r.Cred)
	optional(attrSecret, r.Secret)
	optional(attrLastErr, r.LastErr)
	optional(attrRoute, r.Route)
	optional(attrScope, r.Scope)
	optional(attrFn, r.Handler.Function)
	optional(attrHandler, r.Handler.Name)
	optional(attrTenant, r.Tenant)
	if !r.Expires.IsZero() {
		it[attrExpires] = v.secs(r.Expires)
	}
	if !r.Until.IsZero() {
		it[attrUntil] = v.secs(r.Until)
	}
	if r.Tombstone > 0 {
		it[attrTomb] = v.num(int64(r.Tombstone / time.Second))
	}
	if r.Tries != 0 {
		it[attrTries] = v.num(int64(r.Tries))
	}
	if r.Blocked {
		it[attrBlocked] = yes
	}
	if r.DeliveryKey {
		it[attrDeliver] = yes
	}
	if r.Calls != nil {
		it[attrCalls] = v.calls(r.Calls)
	}
	if len(r.Sent) > 0 {
		it[attrSent] = v.texts(r.Sent)
	}
	if len(r.Doubts) > 0 {
		it[attrDoubts], it[attrDoubt] = v.list(r.Doubts), v.millis(r.DoubtSince)
	}
	if len(r.Phases) > 0 {
		it[attrPhases] = v.phases(r.Phases)
	}
	if len(r.Settled) > 0 {
		it[attrSettled] = v.settled(r.Settled)
	}
	if body != nil {
		it[attrResp] = body
	}
	return it
}

var yes value = &types.AttributeValueMemberBOOL{Value: true}

func (v *values) phases(phases []store.Phase) value {
	list := make([]value, len(phases))
	for i, p := range phases {
		entry := []value{v.str(p.Name)}
		switch {
		case p.Intent:
			entry = append(entry, v.str(""), v.str(phaseIntent))
		case p.Result != nil:
			entry = append(entry, v.str(string(p.Result)))
		}
		list[i] = &types.AttributeValueMemberL{Value: entry}
	}
	return &types.AttributeValueMemberL{Value: list}
}

func (v *values) calls(calls map[string]int) value {
	m := make(item, len(calls))
	for call, n := range calls {
		m[call] = v.num(int64(n))
	}
	return &types.AttributeValueMemberM{Value: m}
}

func (v *values) texts(texts map[string]string) value {
	m := make(item, len(texts))
	for name, s := range texts {
		m[name] = v.str(s)
	}
	return &types.AttributeValueMemberM{Value: m}
}

func (v *values) list(all []string) value {
	list := make([]value, len(all))
	for i, s := range all {
		list[i] = v.str(s)
	}
	return &types.AttributeValueMemberL{Value: list}
}

func (v *values) settled(decisions []store.Decision) value {
	list := make([]value, len(decisions))
	for i, d := range decisions {
		list[i] = &types.AttributeValueMemberM{Value: item{settledBy: v.str(d.By), settledAt: v.millis(d.At), settledWhat: v.str(d.What)}}
	}
	return &types.AttributeValueMemberL{Value: list}
}

func (v *values) jobs(jobs map[string]store.Job) value {
	m := make(item, len(jobs))
	for id, j := range jobs {
		m[id] = v.job(j)
	}
	return &types.AttributeValueMemberM{Value: m}
}

func (v *values) job(j store.Job) value {
	m := item{jobKind: v.str(j.Kind), jobArgs: v.str(string(j.Args))}
	if j.Group != "" {
		m[jobGroup] = v.str(j.Group)
	}
	if j.Tries != 0 {
		m[jobTries] = v.num(int64(j.Tries))
	}
	if j.Failed != "" {
		m[jobFailed] = v.str(j.Failed)
	}
	return &types.AttributeValueMemberM{Value: m}
}

func (v *values) header(h http.Header) value {
	m := make(item, len(h))
	for name, all := range h {
		if len(all) == 1 {
			m[name] = v.field(all[0])
			continue
		}
		list := make([]value, len(all))
		for i, one := range all {
			list[i] = v.field(one)
		}
		m[name] = &types.AttributeValueMemberL{Value: list}
	}
	return &types.AttributeValueMemberM{Value: m}
}

// field keeps the bytes of a header value that isn't UTF-8, as a string can't.
func (v *values) field(s string) value {
	if !utf8.ValidString(s) {
		return &types.AttributeValueMemberB{Value: []byte(s)}
	}
	return v.str(s)
}

// decode reads an item. What is missing or of another type makes it corrupt:
// guessing could run a request again.
func decode(it item) (*store.Record, error) {
	d := decoder{it: it}
	if v := d.number(attrVersion, true); d.err == nil && strconv.FormatInt(v, 10) != layoutVersion {
		return nil, fmt.Errorf("dynamo: %w: layout version %d is not known to this program", store.ErrCorrupt, v)
	}
	r := &store.Record{
		PK:          d.text(attrPK, true),
		State:       store.State(d.text(attrState, true)),
		Owner:       d.text(attrOwner, true),
		Ver:         d.number(attrVer, true),
		Lease:       d.milli(attrLease, true),
		Expires:     d.second(attrExpires),
		Keep:        store.Keep(d.text(attrKeep, false)),
		Until:       d.second(attrUntil),
		Tombstone:   time.Duration(d.number(attrTomb, false)) * time.Second,
		Fingerprint: d.text(attrFP, true),
		Cred:        d.text(attrCred, false),
		Secret:      d.text(attrSecret, false),
		ID:          d.text(attrID, true),
		Phases:      d.phases(),
		Jobs:        d.jobs(),
		Calls:       d.calls(),
		Doubts:      d.doubts(),
		DoubtSince:  d.milli(attrDoubt, false),
		Sent:        d.sent(),
		Tries:       int(d.number(attrTries, false)),
		LastErr:     d.text(attrLastErr, false),
		Blocked:     d.flag(attrBlocked),
		DeliveryKey: d.flag(attrDeliver),
		Created:     d.milli(attrCreated, true),
		Run:         d.milli(attrRun, true),
		Settled:     d.settled(),
		Route:       d.text(attrRoute, false),
		Scope:       d.text(attrScope, false),
		Handler:     store.HandlerID{Function: d.text(attrFn, false), Name: d.text(attrHandler, false)},
		Tenant:      d.text(attrTenant, false),
	}
	d.response(r)
	d.input(r)
	d.check(r)
	if d.err != nil {
		return nil, fmt.Errorf("dynamo: %w: %w", store.ErrCorrupt, d.err)
	}
	return r, nil
}

// decoder remembers the first thing that is wrong with an item.
type decoder struct {
	it  item
	err error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// check holds a record to what every writer keeps to.
func (d *decoder) check(r *store.Record) {
	switch {
	case d.err != nil:
	case r.State != store.Open && r.State != store.Done && r.State != store.Stuck:
		d.fail("st is %q", r.State)
	case r.Ver < 1:
		d.fail("ver is %d", r.Ver)
	case r.Response != nil && (r.Response.Status < 100 || r.Response.Status > 999):
		d.fail("resp.s is %d", r.Response.Status)
	case (r.State == store.Done) != (r.Response != nil):
		d.fail("st is %q, but resp doesn't fit", r.State)
	case (len(r.Doubts) == 0) != r.DoubtSince.IsZero():
		d.fail("doubts and doubt_ms belong together")
	case (r.Keep == store.KeepNothing) != !r.Expires.IsZero():
		d.fail("exactly one of keep and exp_s must be there")
	}
}

func as[T value](d *decoder, it item, name string, must bool) (v T) {
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

func (d *decoder) text(name string, must bool) string {
	if v := as[*types.AttributeValueMemberS](d, d.it, name, must); v != nil {
		return v.Value
	}
	return ""
}

func (d *decoder) number(name string, must bool) int64 {
	return d.numberIn(d.it, name, must)
}

func (d *decoder) numberIn(it item, name string, must bool) int64 {
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

func (d *decoder) flag(name string) bool {
	b := as[*types.AttributeValueMemberBOOL](d, d.it, name, false)
	return b != nil && b.Value
}

func (d *decoder) milli(name string, must bool) time.Time {
	if n := d.number(name, must); n != 0 {
		return time.UnixMilli(n)
	}
	return time.Time{}
}

func (d *decoder) second(name string) time.Time {
	if _, ok := d.it[name]; !ok {
		return time.Time{}
	}
	return time.Unix(d.number(name, true), 0)
}

func (d *decoder) phases() []store.Phase {
	list := as[*types.AttributeValueMemberL](d, d.it, attrPhases, false)
	if list == nil {
		return nil
	}
	phases := make([]store.Phase, len(list.Value))
	for i, entry := range list.Value {
		pair, ok := entry.(*types.AttributeValueMemberL)
		if !ok || len(pair.Value) < 1 || len(pair.Value) > 3 {
			d.fail("phases[%d] is not [name, result]", i)
			return nil
		}
		for j, part := range pair.Value {
			s, ok := part.(*types.AttributeValueMemberS)
			switch {
			case !ok:
				d.fail("phases[%d] has type %T", i, part)
			case j == 0:
				phases[i].Name = s.Value
			case j == 1:
				phases[i].Result = []byte(s.Value)
			case s.Value != phaseIntent:
				d.fail("phases[%d] has mark %q", i, s.Value)
			default:
				phases[i].Result, phases[i].Intent = nil, true
			}
		}
	}
	return phases
}

func (d *decoder) calls() map[string]int {
	m := as[*types.AttributeValueMemberM](d, d.it, attrCalls, false)
	if m == nil {
		return nil
	}
	calls := make(map[string]int, len(m.Value))
	for call := range m.Value {
		calls[call] = int(d.numberIn(m.Value, call, true))
	}
	return calls
}

func (d *decoder) sent() map[string]string {
	m := as[*types.AttributeValueMemberM](d, d.it, attrSent, false)
	if m == nil {
		return nil
	}
	sent, in := make(map[string]string, len(m.Value)), decoder{it: m.Value}
	for call := range m.Value {
		sent[call] = in.text(call, true)
	}
	if in.err != nil {
		d.fail("sent: %w", in.err)
	}
	return sent
}

func (d *decoder) doubts() []string {
	list := as[*types.AttributeValueMemberL](d, d.it, attrDoubts, false)
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

func (d *decoder) settled() []store.Decision {
	list := as[*types.AttributeValueMemberL](d, d.it, attrSettled, false)
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
		one := decoder{it: entry.Value}
		decisions[i] = store.Decision{By: one.text(settledBy, true), At: one.milli(settledAt, true), What: one.text(settledWhat, true)}
		if one.err != nil {
			d.fail("settled[%d]: %w", i, one.err)
		}
	}
	return decisions
}

func (d *decoder) jobs() map[string]store.Job {
	m := as[*types.AttributeValueMemberM](d, d.it, attrJobs, true)
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
		j := decoder{it: entry.Value}
		jobs[id] = store.Job{
			Kind: j.text(jobKind, true), Args: []byte(j.text(jobArgs, true)), Group: j.text(jobGroup, false),
			Tries: int(j.number(jobTries, false)), Failed: j.text(jobFailed, false),
		}
		if j.err != nil {
			d.fail("jobs.%s: %w", id, j.err)
		}
	}
	return jobs
}

func (d *decoder) response(r *store.Record) {
	m := as[*types.AttributeValueMemberM](d, d.it, attrResp, false)
	if m == nil {
		return
	}
	r.Response = &store.Response{Status: int(d.numberIn(m.Value, respStatus, true)), Header: d.header(m.Value)}
	r.Response.Body = d.body("resp.b", m.Value)
	r.Overflow = d.overflow("resp.o", m.Value)
}

// body reads a body that lies in the record itself.
func (d *decoder) body(path string, it item) []byte {
	b := as[*types.AttributeValueMemberB](d, it, respBody, false)
	if b == nil {
		return nil
	}
	if z := as[*types.AttributeValueMemberBOOL](d, it, respGzip, false); z == nil || !z.Value {
		return b.Value
	}
	body, err := gunzip(b.Value, maxStored)
	if err != nil {
		d.fail("%s: %w", path, err)
	}
	return body
}

// overflow reads where a large body lies.
func (d *decoder) overflow(path string, it item) *store.Overflow {
	m := as[*types.AttributeValueMemberM](d, it, respOverflow, false)
	if m == nil {
		return nil
	}
	over := decoder{it: m.Value}
	o := &store.Overflow{
		Owner:  over.text(overOwner, false),
		First:  over.number(overFirst, false),
		Count:  int(over.number(overCount, true)),
		Length: int(over.number(overLength, true)),
	}
	if z := as[*types.AttributeValueMemberBOOL](&over, m.Value, respGzip, false); z != nil {
		o.Gzip = z.Value
	}
	if sum := as[*types.AttributeValueMemberB](&over, m.Value, overSum, true); sum != nil {
		if len(sum.Value) != sha256.Size {
			over.fail("d has %d bytes", len(sum.Value))
		}
		copy(o.SHA256[:], sum.Value)
	}
	if o.Count < 0 || o.Count > maxCompanions || o.Length < 0 || o.Count > 0 && o.Length > maxStored {
		over.fail("%d companions of %d bytes", o.Count, o.Length)
	}
	if over.err != nil {
		d.fail("%s: %w", path, over.err)
	}
	return o
}

func (d *decoder) header(it item) http.Header {
	m := as[*types.AttributeValueMemberM](d, it, respHeader, false)
	if m == nil {
		return nil
	}
	h := make(http.Header, len(m.Value))
	for name, raw := range m.Value {
		list := []value{raw}
		if l, ok := raw.(*types.AttributeValueMemberL); ok {
			list = l.Value
		}
		for _, entry := range list {
			switch v := entry.(type) {
			case *types.AttributeValueMemberS:
				h[name] = append(h[name], v.Value)
			case *types.AttributeValueMemberB:
				h[name] = append(h[name], string(v.Value))
			default:
				d.fail("header %s has type %T", name, entry)
				return nil
			}
		}
	}
	return h
}
