package records

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/base/scope"
	"github.com/samekey/samekey/internal/base/shape"
	"github.com/samekey/samekey/internal/state"
)

// Verb is what an operator may ask for.
type Verb string

// The verbs.
const (
	Retry   Verb = "retry"   // let a stuck operation be tried again
	Settle  Verb = "settle"  // record the outcome of a call, or end the operation with an answer
	Release Verb = "release" // end the lease of a dead attempt
	Forget  Verb = "forget"  // free the key
	Redrive Verb = "redrive" // deliver parked jobs again
	Cancel  Verb = "cancel"  // remove later jobs whose delivery has not begun
	Erase   Verb = "erase"   // remove the caller and the answer from the record
)

// Wish is what an operator asks for.
type Wish struct {
	Do Verb
	By string // the person's name, stored in the record
	// Many says that the wish is for several records at once. [May] then allows only
	// Redrive, and Retry if no call is in doubt, because every other wish needs a
	// separate decision about each record.
	Many bool

	Settlement idem.Settlement // for Settle; sets one of Answer, Result, NotMade, RiskTwice and Ask
	Loss       idem.Loss       // for Forget
	// Jobs names the jobs to redrive or cancel, each by its name in the record or by its
	// whole id. If Jobs is empty, Redrive means all parked jobs, and Cancel all later
	// jobs.
	Jobs []string
}

// Plan is an allowed wish.
type Plan struct {
	// Says contains lines for a person: what will be done, and what can't be undone.
	Says []string

	wish Wish
	rec  *store.Record
	done string
	jobs []string
}

// May returns the plan for a wish. If the wish isn't allowed, May returns the reason as
// an error. The parameter now is the time at which the record was read. The engine
// decides again when [Plan.Run] writes, because the record may have changed.
func May(rec *store.Record, now time.Time, w Wish) (*Plan, error) {
	p := &Plan{wish: w, rec: rec}
	if w.By == "" {
		return nil, errors.New("the name of the person who decides is missing: give a name, which the record stores")
	}
	doubt := state.Decidable(rec, now) != nil || len(rec.Doubts) > 0
	if w.Many && w.Do != Redrive && (w.Do != Retry || doubt) {
		return nil, errors.New("a decision on several records can't include this record: look at the record, and decide on it alone")
	}
	var err error
	switch w.Do {
	case Retry:
		err = p.retry(now)
	case Settle:
		err = p.settle(now)
	case Release:
		err = p.release(now)
	case Forget:
		err = p.forget(now)
	case Redrive:
		err = p.redrive()
	case Cancel:
		err = p.cancel()
	case Erase:
		_, err = state.Erased(rec, now, w.By)
	default:
		err = fmt.Errorf("unknown action %q", w.Do)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Plan) retry(now time.Time) error {
	if _, err := state.Settled(p.rec, state.Settlement{}, now); err != nil {
		return err
	}
	if p.rec.State != store.Stuck {
		return refused(p.rec, now)
	}
	p.Says, p.done = []string{"The operation becomes open: " + Continues(p.rec) + "."}, "open: "+Continues(p.rec)
	return nil
}

// Continues describes who can continue an open operation.
func Continues(rec *store.Record) string {
	if FromSource(rec) {
		return "only the next delivery of the message continues the operation; " + deadLetter(rec)
	}
	if rec.Input == nil {
		return "only the client's next retry with the same key continues the operation, since the request is not stored"
	}
	return "the client's next retry or the completer continues the operation"
}

// deadLetter says what to do about an operation whose message is in a dead-letter queue.
func deadLetter(rec *store.Record) string {
	if rec.DeliveryKey { // SQS gives a redriven message a new id, and the id is the key
		return "if the message is in a dead-letter queue, do the work by hand: a redriven message begins a new operation"
	}
	return "if the message is in a dead-letter queue, redrive that queue"
}

// FromSource reports whether an operation came from a source of events, such as a
// queue, and has no stored request. If so, only another delivery of the message can
// continue the operation.
func FromSource(rec *store.Record) bool {
	_, _, caller, ok := scope.Parse(rec.Scope)
	return ok && caller.Kind == scope.Source && rec.Input == nil
}

// refused returns the error for a retry or a settlement that the operation's state
// doesn't allow.
func refused(rec *store.Record, now time.Time) error {
	switch state.Word(rec, now) {
	case "free":
		return errors.New("the operation is not stuck: the key is free")
	case "held":
		return fmt.Errorf("the operation is not stuck: an attempt holds the record until %s; if the attempt is dead, use samekey release", plain.Time(rec.Lease))
	case "abandoned", "released":
		if rec.Blocked {
			return errors.New("the operation is blocked, not stuck: the deployed program refuses to continue it; deploy a program that continues it, or use samekey settle --answer")
		}
		return errors.New("the operation is not stuck: " + Continues(rec) + "; to end the operation now, use samekey settle --answer")
	}
	return errors.New("the operation is done, not stuck, so its answer can't be changed; to deliver its parked jobs again, use samekey redrive")
}

func (p *Plan) settle(now time.Time) error {
	s := p.wish.Settlement
	of := state.Settlement{Answer: s.Answer, Result: s.Result, NotMade: s.NotMade, RiskTwice: s.RiskTwice, Ask: s.Ask}
	if !state.Settleable(p.rec, of, now) {
		return refused(p.rec, now)
	}
	next, err := state.Settled(p.rec, of, now)
	if err != nil {
		return err
	}
	call, reads := "The call", ""
	c := state.Decidable(p.rec, now)
	if c != nil {
		call, reads = "The call of phase "+plain.Line(fmt.Sprintf("%q", c.Name)), Example(c)
	}
	p.done = "open: " + Continues(p.rec)
	switch {
	case s.Answer != nil && (s.Answer.Status < 200 || s.Answer.Status > 599):
		return fmt.Errorf("status %d: give a status from 200 to 599", s.Answer.Status)
	case s.Answer != nil && carried(s.Answer.Body) > maxAnswer:
		return fmt.Errorf("the body takes %d bytes, and Lambda returns at most %d (6 MB): give a smaller body", carried(s.Answer.Body), maxAnswer)
	case s.Answer != nil:
		p.done = fmt.Sprintf("done: the client gets %d from now on", s.Answer.Status)
		p.Says = []string{
			fmt.Sprintf("The operation (%s) ends: the client gets %d from now on, with this body of %d bytes:", plain.Line(p.rec.Route), s.Answer.Status, len(s.Answer.Body)),
			plain.Line(string(s.Answer.Body)), replayed(state.Finished(next, *s.Answer, now)), "This can't be undone.",
		}
	case s.Result != nil:
		p.Says = decoded(s.Result)
		p.Says[0] = call + " returned " + p.Says[0]
		p.Says = append(p.Says, "The program expects "+cmp.Or(reads, "JSON of a type that the record doesn't store")+".",
			"The call is not made again. A wrong result can be corrected until an attempt has used it.")
	case s.NotMade:
		p.Says = []string{call + " had no effect. The call is made once more."}
	case s.RiskTwice:
		p.Says = []string{call + " may have been made. The call is made once more, and may have its effect twice."}
	case s.Ask:
		p.done = "open: the completer runs the operation"
		p.Says = []string{call + " is looked up at the provider when the completer runs the operation. If the phase has no look-up, the operation becomes stuck again."}
		if c == nil { // no intent forbids that the call is repeated
			p.Says = []string{"When the completer runs the operation, a call in doubt is made again if the provider still knows the call's key. " +
				"Otherwise the call is looked up at the provider. If its phase has no look-up, the operation becomes stuck again."}
		}
	default:
		return errors.New("no decision: give an answer or the outcome of the call")
	}
	if s.Answer == nil {
		p.Says = append(p.Says, "The operation becomes open: "+Continues(p.rec)+".")
	}
	return nil
}

// maxAnswer is Lambda's limit for an answer, in bytes.
const maxAnswer = 6 << 20

// carried returns how many bytes a body takes in Lambda's answer: as a JSON string or,
// if the body isn't UTF-8, as Base64.
func carried(body []byte) int {
	if !utf8.Valid(body) {
		return base64.StdEncoding.EncodedLen(len(body))
	}
	text, err := json.Marshal(string(body))
	if err != nil { // can't happen: every string can be encoded
		return len(body)
	}
	return len(text)
}

// replayed describes until when the answer of a finished record is replayed, and what a
// later retry does.
func replayed(r *store.Record) string {
	says := "The answer is replayed until " + plain.Time(state.Lifetime(r))
	if len(r.Jobs) > 0 {
		says += ", or longer while jobs are undelivered"
	}
	return says + "; a later retry runs as a new request."
}

// Example returns an example of a result that the program can read; "" if the record
// doesn't store the shape of the call's result.
func Example(call *store.Phase) string { return plain.Line(shape.Example(call.Shape)) }

func (p *Plan) release(now time.Time) error {
	if _, err := state.LeaseEnded(p.rec, now, p.wish.By); err != nil {
		return err
	}
	p.Says = []string{
		"The attempt's lease ends now instead of at " + p.rec.Lease.UTC().Format("2006-01-02 15:04:05.000") + " UTC: the next retry takes the operation over at once.",
		"Do this only if the attempt is dead. If the attempt still runs, its calls overlap with the retry's calls.",
	}
	p.done = "released: the client's next retry continues the operation at once"
	if FromSource(p.rec) {
		p.done = "released: " + Continues(p.rec)
	}
	return nil
}

func (p *Plan) forget(now time.Time) error {
	all := state.Lost(p.rec, now)
	lost := make([]string, 0, len(all))
	for _, l := range all {
		lost = append(lost, plain.Line(l))
	}
	if _, err := state.Forgotten(p.rec, now, p.wish.By, p.wish.Loss); err != nil {
		return fmt.Errorf("%w\nforget would lose:\n%s", err, strings.Join(lost, "\n"))
	}
	p.Says = []string{"The key becomes free: the next request with the key runs as a new operation. This is lost:"}
	for _, l := range append(lost, "the record's history, when a new request or the table's TTL removes the record") {
		p.Says = append(p.Says, "  "+l)
	}
	p.Says = append(p.Says, "This can't be undone.")
	p.done = fmt.Sprintf("forgotten: operation %s, by %s", plain.Line(p.rec.ID), plain.Line(p.wish.By))
	return nil
}

// Losses returns what samekey forget would lose: attempt, work, jobs. For each of
// these, the command has a flag, such as --lose-work.
func Losses(rec *store.Record, now time.Time) (names []string) {
	for _, one := range []struct {
		name string
		but  idem.Loss
	}{{"attempt", idem.Loss{Work: true, Jobs: true}}, {"work", idem.Loss{Held: true, Jobs: true}}, {"jobs", idem.Loss{Held: true, Work: true}}} {
		if _, err := state.Forgotten(rec, now, "", one.but); err != nil {
			names = append(names, one.name)
		}
	}
	return names
}

// Plan.redrive chooses the parked jobs to deliver again. A job that is parked after
// this choice stays parked, because the person has not seen that job's failures.
func (p *Plan) redrive() error {
	named, err := p.named()
	if err != nil {
		return err
	}
	for name, j := range p.rec.Jobs {
		if j.Failed != "" && (len(named) == 0 || slices.Contains(named, name)) {
			p.jobs = append(p.jobs, name)
		}
	}
	if len(p.jobs) == 0 {
		return errors.New("nothing to redrive: the record has no parked job, or none of the named jobs is parked")
	}
	p.Says = []string{fmt.Sprintf("Jobs to redrive: %d. Their failures are counted from zero again.", len(p.jobs))}
	return nil
}

// Plan.cancel finds the later jobs whose delivery has not begun.
func (p *Plan) cancel() error {
	named, err := p.named()
	if err != nil {
		return err
	}
	var begun []string
	for _, name := range slices.Sorted(maps.Keys(p.rec.Jobs)) {
		if j := p.rec.Jobs[name]; !j.Begun.IsZero() && (len(named) == 0 || slices.Contains(named, name)) {
			begun = append(begun, fmt.Sprintf("%s %s is not cancelled: its delivery began at %s, so the job may have arrived", plain.Line(state.JobID(p.rec.ID, name)), plain.Line(j.Kind), plain.Time(j.Begun)))
		}
	}
	if p.jobs = state.Cancellable(p.rec, named); len(p.jobs) == 0 {
		return errors.New(strings.Join(append([]string{"nothing to cancel: only a later job whose delivery has not begun can be cancelled"}, begun...), "\n"))
	}
	p.Says = []string{"The delivery of these jobs has not begun. They are removed and never delivered:"}
	for _, name := range p.jobs {
		j := p.rec.Jobs[name]
		p.Says = append(p.Says, fmt.Sprintf("  %s %s, for %s", plain.Line(state.JobID(p.rec.ID, name)), plain.Line(j.Kind), plain.Time(j.At)))
	}
	p.Says = append(append(p.Says, begun...), "This can't be undone.")
	return nil
}

// Plan.named returns the jobs of the wish. It converts the ids of jobs into their names
// in the record.
func (p *Plan) named() ([]string, error) {
	named := make([]string, 0, len(p.wish.Jobs))
	for _, id := range p.wish.Jobs {
		if parts := strings.Split(id, "."); len(parts) == 3 {
			if parts[0] != p.rec.ID {
				return nil, fmt.Errorf("the job %s belongs to another operation; the record's operation is %s", plain.Line(id), plain.Line(p.rec.ID))
			}
			id = parts[1] + "." + parts[2]
		}
		named = append(named, id)
	}
	return named, nil
}

// PK returns the partition key of the record.
func (p *Plan) PK() string { return p.rec.PK }

// Run carries out the plan if the record is unchanged. The result done says what was
// done.
func (p *Plan) Run(ctx context.Context, s *dynamo.Store) (done string, err error) {
	engine := idem.New(s, func(o *idem.Options) {
		o.Namespace, o.Logger = state.Namespace(p.rec.PK), slog.New(slog.DiscardHandler) // no log: Run returns what the engine would log
	})
	seen := state.TicketFor(p.rec)
	switch p.wish.Do {
	case Retry, Settle:
		settlement := p.wish.Settlement
		settlement.Seen, settlement.By = seen, p.wish.By
		if err = engine.Settle(ctx, p.rec.PK, settlement); err == nil && settlement.Answer == nil && FromSource(p.rec) {
			// The decision is stored. So Run returns no error, even if the list can't be
			// updated.
			if err := stream.Refer(ctx, s, seen, errors.New("a person settled the operation, but its message has not been delivered since: "+deadLetter(p.rec))); err != nil {
				return p.done + "; but samekey list doesn't show the operation: " + plain.Line(err.Error()), nil
			}
		}
	case Release:
		err = engine.EndLease(ctx, seen, p.wish.By)
	case Forget:
		var lost []string
		if lost, err = engine.Forget(ctx, seen, p.wish.By, p.wish.Loss); len(lost) > 0 {
			return p.done + "; the jobs are removed, but a late drain may still deliver them: " + plain.Line(strings.Join(lost, " ")), err
		}
	case Redrive:
		var n int
		n, err = redrive(ctx, s, p.rec, p.wish.By, p.jobs)
		return fmt.Sprintf("jobs redriven: %d; the drain delivers them from the table's stream", n), err
	case Cancel:
		var n int
		n, err = stream.Cancel(ctx, s, p.rec.PK, p.rec.ID, p.wish.By, p.jobs...)
		done = fmt.Sprintf("jobs cancelled: %d", n)
		if left := len(p.jobs) - n; err == nil && n == 0 {
			err = fmt.Errorf("%w: the job's delivery has begun, or somebody else has cancelled the job", jobs.ErrMoved)
		} else if left > 0 {
			done += fmt.Sprintf("; jobs not cancelled: %d, because their delivery has begun or somebody else has cancelled them", left)
		}
		return done, err
	case Erase:
		err = engine.Erase(ctx, seen, p.wish.By)
	}
	return p.done, err
}

// redrive redrives jobs of a record. It returns an error if none of them is parked.
func redrive(ctx context.Context, s *dynamo.Store, rec *store.Record, by string, names []string) (int, error) {
	n, err := stream.Redrive(ctx, s, rec.PK, rec.ID, by, names...)
	if err == nil && n == 0 {
		err = fmt.Errorf("%w: the job is no longer parked", jobs.ErrMoved)
	}
	return n, err
}

// decoded describes JSON by its kind and content, so that a person notices mistakes
// such as a number in quotes.
func decoded(raw json.RawMessage) []string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return []string{plain.Line(string(raw))}
	}
	kind := "an object:"
	switch v := v.(type) {
	case nil:
		return []string{"null"}
	case string:
		return []string{"the text " + plain.Line(v)}
	case json.Number:
		return []string{"the number " + v.String()}
	case bool:
		return []string{fmt.Sprintf("the value %t", v)}
	case []any:
		kind = "a list:"
	}
	var lines bytes.Buffer
	_ = json.Indent(&lines, raw, "", "  ") // raw is valid JSON
	all := []string{kind}
	for l := range strings.SplitSeq(lines.String(), "\n") {
		all = append(all, plain.Line(l))
	}
	return all
}
