package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
)

func (op *stuckDesk) retry(ctx context.Context) error {
	pk := op.opt.args[0]
	s := idem.Settlement{NotMade: op.opt.notMade, RiskTwice: op.opt.riskTwice, By: op.opt.by}
	if op.opt.result != "" {
		if s.Result = json.RawMessage(op.opt.result); !json.Valid(s.Result) {
			return fmt.Errorf(`-result %[1]s is not JSON (a string needs quotes: -result '"%[1]s"')`, op.opt.result)
		}
	}
	if s.NotMade && s.Result != nil || s.RiskTwice && (s.NotMade || s.Result != nil) {
		return errors.New("-result, -not-made and -risk-twice contradict each other: the call was made, it was not, or nobody knows")
	}
	e, rec, err := op.engine(ctx, pk)
	if err != nil {
		return err
	}
	s.Seen = jobs.TicketFor(rec)
	call := "The call"
	if n := len(rec.Phases); n > 0 && rec.Phases[n-1].Intent {
		call = fmt.Sprintf("The call of phase %q", rec.Phases[n-1].Name)
	}
	switch {
	case s.Result != nil:
		err = op.confirm(call + " came to " + decoded(s.Result) + "\nIt is not made again, and this can't be corrected.")
	case s.NotMade:
		err = op.confirm(call + " had no effect. It is made once more.")
	case s.RiskTwice:
		err = op.confirm(call + " may have been made. It is made once more, and may then have its effect twice.")
	}
	if err != nil {
		return err
	}
	switch err := e.Settle(ctx, pk, s); {
	case errors.Is(err, idem.ErrResult) && s.Result == nil && !s.NotMade && !s.RiskTwice:
		return fmt.Errorf("%w; -result JSON says what it came to, -not-made that it had no effect, -risk-twice lets it happen twice", err)
	case errors.Is(err, jobs.ErrMoved):
		return fmt.Errorf("%w; for a parked job use redrive", err)
	case err != nil:
		return err
	}
	fmt.Fprintln(op.env.stdout, "open: its client's next retry takes it up, or the completer")
	return nil
}

func (op *stuckDesk) answer(ctx context.Context) error {
	pk := op.opt.args[0]
	if op.opt.status < 200 || op.opt.status > 599 {
		return fmt.Errorf("-status %d: 200 to 599", op.opt.status)
	}
	e, rec, err := op.engine(ctx, pk)
	if err != nil {
		return err
	}
	body := []byte(op.opt.body)
	if op.opt.bodyFile != "" {
		if body, err = os.ReadFile(op.opt.bodyFile); err != nil {
			return err
		}
	}
	re := &idem.Response{Status: op.opt.status, Body: body}
	if len(body) > 0 {
		re.Header = http.Header{"Content-Type": {op.opt.contentType}}
	}
	if err := op.confirm(fmt.Sprintf("%s is over: its client gets %d from now on, with %d bytes:\n%s\nThis can't be corrected.",
		rec.Route, re.Status, len(body), printable(string(body)))); err != nil {
		return err
	}
	err = e.Settle(ctx, pk, idem.Settlement{Answer: re, Seen: jobs.TicketFor(rec), By: op.opt.by})
	if err == nil {
		fmt.Fprintf(op.env.stdout, "done: its client gets %d from now on\n", op.opt.status)
	}
	return err
}

// confirm asks about what can't be undone. Only "y" and "yes" are a yes.
func (op *stuckDesk) confirm(what string) error {
	if op.opt.yes {
		return nil
	}
	fmt.Fprintf(op.env.stderr, "%s\nGo on? (y/n) ", what)
	typed, _ := bufio.NewReader(op.env.stdin).ReadString('\n') // without a line, it is no yes
	switch strings.ToLower(strings.TrimSpace(typed)) {
	case "y", "yes":
		return nil
	}
	return errors.New("not confirmed, and nothing done; -yes doesn't ask")
}

// decoded is JSON as the program will see it, so that a string in a string or a
// number in quotes can be told.
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
