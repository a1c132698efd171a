package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
)

// decider is a command that changes one record. It finds the record, shows the
// change, asks, and writes only if the record is still as shown.
type decider struct {
	env  environment
	op   *operator
	find *finder
	c    *change

	rec *store.Record // the record as the person saw it
}

// decision holds the parts of a decider that each command defines for itself.
type decision struct {
	check func() error
	wish  func() records.Wish
	hint  func(*store.Record) string // returns a text for the end of a refusal: what to do instead; may be nil
}

func newDecider(env environment, cmd *cobra.Command, names bool, d *decision) *decider {
	fs := cmd.Flags()
	p := &decider{env: env, op: newOperator(env, fs), c: newChange(env, fs)}
	p.find = newFinder(p.op, fs)
	most := 1
	if names {
		most = 50
	}
	cmd.Args = takes(0, most)
	cmd.Long += "\n\nThe command shows the change and asks. It makes the change only if the record has not\nchanged meanwhile. The record stores the decision, the person's name and the time.\n\n" + refHelp
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ref := args
		if p.find.key != "" && names {
			ref = nil
		}
		if err := p.find.check(ref); err != nil {
			return err
		}
		if p.c.by == "" {
			return wrongCallf("no name of the person who decides: set --by or USER; the name is stored in the record")
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
	wish := d.wish()
	if wish.Do == records.Forget && len(ref) > 0 && strings.HasPrefix(ref[0], state.NoTicket) {
		return p.dismiss(ctx, ref[0])
	}
	if p.rec, err = p.find.find(ctx, ref); err != nil {
		return err
	}
	wish.By = p.c.by
	plan, err := records.May(p.rec, p.env.now(), wish)
	if err != nil && d.hint != nil {
		err = fmt.Errorf("%w%s", err, d.hint(p.rec))
	}
	if err != nil {
		return err
	}
	story := records.Explain(p.rec, records.StoryOptions{Now: p.env.now(), Sealed: p.op.sealed})
	p.env.note("%s  %s", story.Record, story.Route)
	p.env.note("%s", story.Summary)
	if story.Sealed != "" {
		p.env.note("sealed: %s", story.Sealed)
	}
	if yes, err := p.c.agreed(p.env, p.op.place, plan.Says...); !yes {
		return err
	}
	done, err := plan.Run(ctx, p.op.store)
	switch {
	case errors.Is(err, store.ErrUnknown):
		return fmt.Errorf("%w; the change may have been made: look at the record again with samekey get", err)
	case errors.Is(err, jobs.ErrMoved):
		return fmt.Errorf("%w; nothing was changed: look at the record again with samekey get", err)
	case errors.Is(err, store.ErrSealed):
		return p.op.sealedWrite(err)
	case err != nil:
		return err
	}
	if p.op.json {
		return p.env.printJSON(changed{Record: p.rec.PK, Operation: p.rec.ID, By: p.c.by, From: state.Word(p.rec, p.env.now()), Done: done})
	}
	return p.env.say("%s", done)
}

// decider.dismiss removes an entry of samekey list: a message that was in the queue of
// tickets, but isn't a ticket.
func (p *decider) dismiss(ctx context.Context, pk string) error {
	if yes, err := p.c.agreed(p.env, p.op.place, "This is a message that was in the queue of tickets, but was no ticket. Only its entry in samekey list is removed; no operation is lost."); !yes {
		return err
	}
	switch done, err := stream.Dismiss(ctx, p.op.store, pk); {
	case err != nil:
		return err
	case !done:
		return notFound("samekey list shows no message " + plain.Line(pk))
	}
	if p.op.json {
		return p.env.printJSON(changed{Record: pk, By: p.c.by, From: string(state.ReasonUnreadable), Done: "dismissed"})
	}
	return p.env.say("dismissed")
}

// changed is the JSON output of a decider.
type changed struct {
	Record    string `json:"record"`
	Operation string `json:"operation"`
	By        string `json:"by"`
	From      string `json:"from"`
	Done      string `json:"done"`
}

// changeExits sets the exit codes of a command that changes a record.
func changeExits(cmd *cobra.Command) *cobra.Command {
	return exitCodes(cmd, map[int]string{
		exitDone: "done; with --dry-run: the change was shown", exitFailed: "failed, not confirmed, or refused because the record has changed", exitFound: "no record matches",
	})
}

func newRetry(env environment) *cobra.Command {
	d := &decision{
		wish: func() records.Wish { return records.Wish{Do: records.Retry} },
		hint: func(rec *store.Record) string {
			call := state.Decidable(rec, env.now())
			if call == nil {
				return ""
			}
			return "; use samekey settle with --result " + plain.Quote(cmp.Or(records.Example(call), "JSON")) + ", --not-made or --risk-twice"
		},
	}
	cmd := &cobra.Command{
		Use: "retry {REF | --key KEY [--scope SCOPE]} [FLAGS]", Short: "Try a stuck operation again",
		Long: "Makes a stuck operation open again, so that the next attempt continues it. Mend the cause of\nthe failures first. If a call is in doubt, use samekey settle instead.",
	}
	newDecider(env, cmd, false, d)
	return changeExits(cmd)
}

func newRelease(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "release {REF | --key KEY [--scope SCOPE]} [FLAGS]", Short: "End the lease of a dead attempt",
		Long: "Ends the lease of a dead attempt, so that the client's next retry continues the\noperation at once. Calls that the attempt may have made stay in doubt.",
	}
	newDecider(env, cmd, false, &decision{wish: func() records.Wish { return records.Wish{Do: records.Release} }})
	return changeExits(cmd)
}

func newForget(env environment) *cobra.Command {
	var loss idem.Loss
	cmd := &cobra.Command{
		Use: "forget {REF | --key KEY [--scope SCOPE]} [FLAGS]", Short: "Free a key and forget the operation",
		Long: "Frees the key of an operation: the next request with the key runs as a new operation.\nDangerous: completed work may be done again.\n\nIf the queue of tickets had a message that is no ticket, samekey list shows the message\nas samekey#ticket#ID. With this REF, forget only removes the message from the list.",
	}
	newDecider(env, cmd, false, &decision{wish: func() records.Wish { return records.Wish{Do: records.Forget, Loss: loss} }})
	fs := cmd.Flags()
	fs.BoolVar(&loss.Held, "lose-attempt", false, "forget the operation even if an attempt may still run")
	fs.BoolVar(&loss.Work, "lose-work", false, "forget the operation even if work was done or calls were made: a new request repeats the work")
	fs.BoolVar(&loss.Jobs, "lose-jobs", false, "forget the operation even if jobs are undelivered; the drain may still deliver some of them")
	return changeExits(cmd)
}

// settling holds the flags of samekey settle.
type settling struct {
	status                      int
	body, bodyFile, contentType string
	result                      string
	notMade, riskTwice, ask     bool

	answer *idem.Response
}

func newSettle(env environment) *cobra.Command {
	s := &settling{}
	d := &decision{check: s.check, wish: func() records.Wish {
		return records.Wish{Do: records.Settle, Settlement: idem.Settlement{Answer: s.answer, Result: s.raw(), NotMade: s.notMade, RiskTwice: s.riskTwice, Ask: s.ask}}
	}}
	cmd := &cobra.Command{
		Use: "settle {REF | --key KEY [--scope SCOPE]} {--answer STATUS | --result JSON | --not-made | --risk-twice | --ask} [FLAGS]", Short: "Settle a stuck operation or a call in doubt",
		Long: `With --answer, ends a stuck or abandoned operation: its client gets this answer from now on.
The other flags decide what happens with a call in doubt, so that the operation can continue:

  --result JSON   the call was made, and JSON is its result (samekey get shows the fields)
  --not-made      the call had no effect, and is made once more
  --risk-twice    the outcome stays unknown: the call is made once more, and may happen twice
  --ask           the completer asks the provider (idem.LookUp), unless it may repeat the call

Another --result corrects a wrong result, unless an attempt has already used the wrong result.`,
	}
	newDecider(env, cmd, false, d)
	s.register(cmd.Flags())
	return changeExits(cmd)
}

func (s *settling) register(fs *pflag.FlagSet) {
	fs.IntVar(&s.status, "answer", 0, "end the operation with this HTTP `STATUS`, 200 to 599")
	fs.StringVar(&s.body, "body", "", "body of the answer")
	fs.StringVar(&s.bodyFile, "body-file", "", "read the answer's body from `FILE`")
	fs.StringVar(&s.contentType, "content-type", "application/json", "Content-Type of the answer")
	fs.StringVar(&s.result, "result", "", "result of the call in doubt, as `JSON`")
	fs.BoolVar(&s.notMade, "not-made", false, "the call in doubt had no effect: make the call once more")
	fs.BoolVar(&s.riskTwice, "risk-twice", false, "make the call in doubt once more, at the risk that it happens twice")
	fs.BoolVar(&s.ask, "ask", false, "let the completer ask the provider about the call in doubt (idem.LookUp)")
}

func (s *settling) raw() json.RawMessage {
	if s.result == "" {
		return nil
	}
	return json.RawMessage(s.result)
}

func (s *settling) check() error {
	n := 0
	for _, given := range []bool{s.status != 0, s.result != "", s.notMade, s.riskTwice, s.ask} {
		if given {
			n++
		}
	}
	switch {
	case n != 1:
		return errors.New("give exactly one of --answer, --result, --not-made, --risk-twice and --ask")
	case s.status != 0 && (s.status < 200 || s.status > 599):
		return fmt.Errorf("--answer is %d: give a status from 200 to 599", s.status)
	case s.result != "" && !json.Valid(s.raw()):
		return fmt.Errorf(`--result %[1]s is not JSON (a string needs quotes: --result '"%[1]s"')`, s.result)
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
