package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/cli/explain"
	"github.com/samekey/samekey/internal/state"
)

// decider is a command that changes one record: it finds it, shows the change, asks,
// and writes only if the record is still as it was shown.
type decider struct {
	env  environment
	op   *operator
	find *finder
	c    *change

	retention, tombstone time.Duration
	rec                  *store.Record // as it was shown
	engine               *idem.Engine  // of the record's namespace
}

// decision is how a command differs from the others: show checks the record and says in
// words what will be done, and do does it and says what has been done.
type decision struct {
	check func() error
	show  func(*store.Record) (string, error)
	do    func(context.Context) (string, error)
}

func newDecider(env environment, cmd *cobra.Command, names bool, d *decision) *decider {
	fs := cmd.Flags()
	p := &decider{env: env, op: newOperator(env, fs), c: newChange(env, fs)}
	p.find = newFinder(p.op, fs)
	fs.DurationVar(&p.retention, "retention", idem.DefaultRetention, "for how long answers are replayed; that of the function")
	fs.DurationVar(&p.tombstone, "tombstone", 0, "for how long after that the key says expired; that of the function")
	most := 1
	if names {
		most = 50
	}
	cmd.Args = takes(0, most)
	cmd.Long += "\n\nThe change is shown and asked about. It is made only if the record is still as shown,\nand the record keeps who decided what, and when.\n\n" + refHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref := args
		if p.find.key == "" && len(args) > 0 {
			ref = args[:1]
		} else if p.find.key != "" && names {
			ref = nil
		}
		if err := p.find.check(ref); err != nil {
			return err
		}
		switch {
		case p.retention < idem.MinRetention || p.tombstone < 0:
			return wrongCallf("--retention is at least %v, --tombstone not negative", idem.MinRetention)
		case p.c.by == "":
			return wrongCallf("who decides? Set --by or USER; it stays in the record")
		}
		if d.check != nil {
			if err := d.check(); err != nil {
				return wrongCall(err)
			}
		}
		return p.run(cmd.Context(), ref, d)
	}
	return p
}

func (p *decider) run(ctx context.Context, ref []string, d *decision) (err error) {
	if err := p.op.open(ctx); err != nil {
		return err
	}
	if p.rec, err = p.find.find(ctx, ref); err != nil {
		return err
	}
	p.engine = idem.New(p.op.store, func(o *idem.Options) {
		o.Namespace, o.Retention, o.Tombstone = state.Namespace(p.rec.PK), p.retention, p.tombstone
		o.Logger = slog.New(slog.DiscardHandler) // what it would say is returned
	})
	what, err := d.show(p.rec)
	if err != nil {
		return err
	}
	story := explain.Of(p.rec, explain.Options{Now: p.env.now(), Retention: p.retention, Sealed: p.op.sealed})
	p.env.note("%s  %s\n%s", printable(story.Record), printable(story.Route), printable(story.Summary))
	if story.Sealed != "" {
		p.env.note("sealed: %s", printable(story.Sealed))
	}
	if yes, err := p.c.agreed(p.env, what); err != nil || !yes {
		return err
	}
	done, err := d.do(ctx)
	switch {
	case errors.Is(err, jobs.ErrMoved):
		return fmt.Errorf("%w; nothing was changed: look at it again", err)
	case errors.Is(err, store.ErrSealed):
		return p.op.sealedWrite(err)
	case err != nil:
		return err
	}
	if p.op.json {
		return p.env.printJSON(changed{Record: p.rec.PK, Operation: p.rec.ID, By: p.c.by, From: state.Word(p.rec, p.env.now()), Done: done})
	}
	fmt.Fprintln(p.env.stdout, done)
	return nil
}

// changed is what a command prints with --json.
type changed struct {
	Record    string `json:"record"`
	Operation string `json:"operation"`
	By        string `json:"by"`
	From      string `json:"from"`
	Done      string `json:"done"`
}

func (p *decider) seen() jobs.Ticket { return jobs.TicketFor(p.rec) }

// changeExits are the exit codes of commands that change a record.
func changeExits(cmd *cobra.Command) *cobra.Command {
	return exitCodes(cmd, map[int]string{
		exitDone: "done, or shown only with --dry-run", exitFailed: "failed, not confirmed, or refused because the record has been written since", exitFound: "there is no such record",
	})
}

func newRetry(env environment) *cobra.Command {
	var p *decider
	d := &decision{
		show: func(rec *store.Record) (string, error) {
			if _, err := state.Settled(rec, state.Settlement{}, env.now()); err != nil {
				return "", fmt.Errorf("%w; samekey settle says so: --result JSON, --not-made or --risk-twice", err)
			}
			if rec.State != store.Stuck {
				return "", errors.New("it is not stuck: its client's retry or the completer tries it; for a parked job use samekey redrive")
			}
			if rec.Input == nil {
				return "It is opened: its client's next retry tries it again. Its request is not stored, so no completer can.", nil
			}
			return "It is opened: its client's next retry, or the completer, tries it again.", nil
		},
		do: func(ctx context.Context) (string, error) {
			done := "open: its client's next retry takes it up, or the completer"
			if p.rec.Input == nil {
				done = "open: its client's next retry takes it up"
			}
			return done, p.engine.Settle(ctx, p.rec.PK, idem.Settlement{Seen: p.seen(), By: p.c.by})
		},
	}
	cmd := &cobra.Command{
		Use: "retry {REF | --key KEY --scope SCOPE} [FLAGS]", Short: "Let a stuck operation be tried again",
		Long: "Opens a stuck operation, after the cause of its failures is removed. An operation with a\ncall whose outcome is unknown needs samekey settle instead.",
	}
	p = newDecider(env, cmd, false, d)
	return changeExits(cmd)
}

func newRelease(env environment) *cobra.Command {
	var p *decider
	d := &decision{
		show: func(rec *store.Record) (string, error) {
			if _, err := state.LeaseEnded(rec, env.now(), p.c.by); err != nil {
				return "", err
			}
			return "The lease of its attempt, which lasts until " + at(rec.Lease) + " UTC, is ended: a retry takes the operation over at once.\n" +
				"Do this only if the attempt is dead. If it still works, its calls and those of the retry overlap.", nil
		},
		do: func(ctx context.Context) (string, error) {
			return "released: its client's next retry goes on at once", p.engine.EndLease(ctx, p.seen(), p.c.by)
		},
	}
	cmd := &cobra.Command{
		Use: "release {REF | --key KEY --scope SCOPE} [FLAGS]", Short: "Give back the lease of an attempt that never came back",
		Long: "Ends the lease of an attempt that is dead, so that the client's retry goes on at once\ninstead of after the lease. Calls that the attempt may have made stay in doubt.",
	}
	p = newDecider(env, cmd, false, d)
	return changeExits(cmd)
}

func newForget(env environment) *cobra.Command {
	var p *decider
	var loss idem.Loss
	d := &decision{
		show: func(rec *store.Record) (string, error) {
			lost := state.Lost(rec, env.now())
			if _, err := state.Forgotten(rec, env.now(), p.c.by, loss); err != nil {
				return "", fmt.Errorf("%w\nlost would be:\n  %s", err, printable(strings.Join(lost, "\n  ")))
			}
			lines := []string{"The key becomes free: a request with it runs anew, as another operation. Lost is:"}
			for _, l := range append(lost, "its history, once the table's TTL has removed the record") {
				lines = append(lines, "  "+printable(l))
			}
			return strings.Join(append(lines, "This can't be corrected."), "\n"), nil
		},
		do: func(ctx context.Context) (string, error) {
			return fmt.Sprintf("forgotten: operation %s, by %s", p.rec.ID, printable(p.c.by)), p.engine.Forget(ctx, p.seen(), p.c.by, loss)
		},
	}
	cmd := &cobra.Command{
		Use: "forget {REF | --key KEY --scope SCOPE} [FLAGS]", Short: "Free a key, and lose its operation",
		Long: "Frees the key of an operation: the record expires, and a request with the key runs anew.\nDangerous: work that is done may be done again.",
	}
	p = newDecider(env, cmd, false, d)
	fs := cmd.Flags()
	fs.BoolVar(&loss.Held, "lose-attempt", false, "also if an attempt holds it and may be at work")
	fs.BoolVar(&loss.Work, "lose-work", false, "also if it has finished, work is committed, or calls may have been made: a new request does them again")
	fs.BoolVar(&loss.Jobs, "lose-jobs", false, "also if jobs are not delivered")
	return changeExits(cmd)
}

func newRedrive(env environment) *cobra.Command {
	var p *decider
	var names []string
	d := &decision{
		show: func(rec *store.Record) (string, error) {
			for i, id := range names {
				if parts := strings.Split(id, "."); len(parts) == 3 {
					if parts[0] != rec.ID {
						return "", fmt.Errorf("%s is of another operation: that of the record is %s", printable(id), rec.ID)
					}
					names[i] = parts[1] + "." + parts[2]
				}
			}
			var parked []string
			for name, j := range rec.Jobs {
				if j.Failed != "" && (len(names) == 0 || slices.Contains(names, name)) {
					parked = append(parked, name)
				}
			}
			if len(parked) == 0 {
				return "", errors.New("no such job is parked in it")
			}
			names = parked // nobody has seen why another job is parked meanwhile
			return fmt.Sprintf("Jobs that are handed out again: %d. Their counts of failures begin anew.", len(parked)), nil
		},
		do: func(ctx context.Context) (string, error) {
			n, err := stream.RedriveBy(ctx, p.op.store, p.rec.PK, p.rec.ID, p.c.by, names...)
			if err == nil && n == 0 {
				err = fmt.Errorf("%w: no such job is parked any more", jobs.ErrMoved)
			}
			return fmt.Sprintf("%d handed out again: the drain sees them in the stream", n), err
		},
	}
	cmd := &cobra.Command{
		Use: "redrive {REF | --key KEY --scope SCOPE} [JOB...] [FLAGS]", Short: "Deliver parked jobs again",
		Long: "Hands parked jobs of a record out again: all, or those named by their id or by PHASE.INDEX.\nRemove the cause of their failures first.",
	}
	p = newDecider(env, cmd, true, d)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if names = args; p.find.key == "" && len(args) > 0 {
			if names = args[1:]; len(names) == 0 && isJob.MatchString(args[0]) {
				names = args[:1]
			}
		}
		names = append([]string(nil), names...)
		return run(cmd, args)
	}
	return changeExits(cmd)
}

// settling are the flags of settle.
type settling struct {
	env                         environment
	status                      int
	body, bodyFile, contentType string
	result                      string
	notMade, riskTwice          bool

	answer *idem.Response
}

func newSettle(env environment) *cobra.Command {
	var p *decider
	s := &settling{env: env}
	d := &decision{
		check: s.check,
		show:  func(rec *store.Record) (string, error) { return s.show(rec) },
		do: func(ctx context.Context) (string, error) {
			err := p.engine.Settle(ctx, p.rec.PK, idem.Settlement{
				Answer: s.answer, Result: s.raw(), NotMade: s.notMade, RiskTwice: s.riskTwice, Seen: p.seen(), By: p.c.by,
			})
			if s.answer != nil {
				return fmt.Sprintf("done: its client gets %d from now on", s.answer.Status), err
			}
			return "open: its client's next retry takes it up, or the completer", err
		},
	}
	cmd := &cobra.Command{
		Use: "settle {REF | --key KEY --scope SCOPE} {--answer STATUS | --result JSON | --not-made | --risk-twice} [FLAGS]", Short: "Decide about a stuck operation",
		Long: `Ends a stuck or abandoned operation with an answer, which its client gets from now on
(--answer). Or says what a call with an unknown outcome came to: its result, that it had
no effect, or that it may be made twice; the operation then goes on.`,
	}
	p = newDecider(env, cmd, false, d)
	s.register(cmd.Flags())
	return changeExits(cmd)
}

func (s *settling) register(fs *pflag.FlagSet) {
	fs.IntVar(&s.status, "answer", 0, "end the operation with this HTTP `STATUS`, 200 to 599")
	fs.IntVar(&s.status, "status", 0, "the same as --answer")
	fs.StringVar(&s.body, "body", "", "of the answer: its body")
	fs.StringVar(&s.bodyFile, "body-file", "", "of the answer: a `FILE` with its body")
	fs.StringVar(&s.contentType, "content-type", "application/json", "of the answer: its Content-Type")
	fs.StringVar(&s.result, "result", "", "the call with an unknown outcome came to this, as `JSON`")
	fs.BoolVar(&s.notMade, "not-made", false, "the call with an unknown outcome had no effect: it is made once more")
	fs.BoolVar(&s.riskTwice, "risk-twice", false, "make the call with an unknown outcome again, though it may then happen twice")
	_ = fs.MarkHidden("status")
}

func (s *settling) raw() json.RawMessage {
	if s.result == "" {
		return nil
	}
	return json.RawMessage(s.result)
}

func (s *settling) check() error {
	n := 0
	for _, given := range []bool{s.status != 0, s.result != "", s.notMade, s.riskTwice} {
		if given {
			n++
		}
	}
	switch {
	case n != 1:
		return errors.New("give one of --answer, --result, --not-made and --risk-twice: the others contradict it")
	case s.status != 0 && (s.status < 200 || s.status > 599):
		return fmt.Errorf("--answer %d: 200 to 599", s.status)
	case s.result != "" && !json.Valid(s.raw()):
		return fmt.Errorf(`--result %[1]s is not JSON (a string needs quotes: --result '"%[1]s"')`, printable(s.result))
	case s.status == 0:
		return nil
	}
	body := []byte(s.body)
	if s.bodyFile != "" {
		var err error
		if body, err = os.ReadFile(s.bodyFile); err != nil {
			return err
		}
	}
	s.answer = &idem.Response{Status: s.status, Body: body}
	if len(body) > 0 {
		s.answer.Header = http.Header{"Content-Type": {s.contentType}}
	}
	return nil
}

// show says what can't be undone, as the program will see it.
func (s *settling) show(rec *store.Record) (string, error) {
	settlement := state.Settlement{Answer: s.answer, Result: s.raw(), NotMade: s.notMade, RiskTwice: s.riskTwice}
	if !state.Settleable(rec, settlement, s.env.now()) {
		return "", errors.New("it is not stuck, nor abandoned, and has no use for this")
	}
	if _, err := state.Settled(rec, settlement, s.env.now()); err != nil {
		return "", err
	}
	call := "The call"
	if n := len(rec.Phases); n > 0 && rec.Phases[n-1].Intent {
		call = fmt.Sprintf("The call of phase %q", rec.Phases[n-1].Name)
	}
	switch {
	case s.result != "":
		return call + " came to " + decoded(s.raw()) + "\nIt is not made again, and this can't be corrected.", nil
	case s.notMade:
		return call + " had no effect. It is made once more.", nil
	case s.riskTwice:
		return call + " may have been made. It is made once more, and may then have its effect twice.", nil
	}
	return fmt.Sprintf("%s is over: its client gets %d from now on, with %d bytes:\n%s\nThis can't be corrected.",
		printable(rec.Route), s.answer.Status, len(s.answer.Body), printable(string(s.answer.Body))), nil
}

// decoded is JSON as the program will see it, so that a string in a string or a number
// in quotes can be told.
func decoded(raw json.RawMessage) string {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return printable(string(raw))
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "the text " + printable(v)
	case json.Number:
		return "the number " + v.String()
	case bool:
		return fmt.Sprintf("the value %t", v)
	}
	var lines bytes.Buffer
	_ = json.Indent(&lines, raw, "", "  ") // it is valid
	kind := "an object:\n"
	if _, list := v.([]any); list {
		kind = "a list:\n"
	}
	all := strings.Split(lines.String(), "\n")
	for i := range all {
		all[i] = printable(all[i])
	}
	return kind + strings.Join(all, "\n")
}
