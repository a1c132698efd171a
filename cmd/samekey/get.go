package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
)

func newGet(env environment) *cobra.Command {
	var opt records.StoryOptions
	cmd := &cobra.Command{
		Use:   "get {REF | --key KEY [--scope SCOPE]} [FLAGS]",
		Short: "Explain one operation: what happened, and what comes next",
		Long: "Explains one operation from its record: attempts, phases, calls with their derived keys,\n" +
			"jobs, answer, decisions of people, cost, and what comes next.\n\n" + refHelp,
		Args: takes(0, 1),
	}
	fs := cmd.Flags()
	op := newOperator(env, fs)
	find := newFinder(op, fs)
	fs.BoolVar(&opt.Data, "data", false, "also print results of phases, args of jobs, the request and the answer; all these may contain personal data")
	fs.DurationVar(&opt.Grace, "grace", state.DefaultGrace, "the completer's grace: how long the completer leaves an operation to the client")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := find.check(args); err != nil {
			return err
		}
		if err := op.open(cmd.Context()); err != nil {
			return err
		}
		rec, err := find.find(cmd.Context(), args)
		if err != nil {
			return err
		}
		if opt.Listed, err = stream.Listed(cmd.Context(), op.store, rec); err != nil {
			opt.ListedUnknown = err.Error()
		}
		opt.Now, opt.Sealed = env.now(), op.sealed
		story := records.Explain(rec, opt)
		if op.json {
			return env.printJSON(story)
		}
		return env.printStory(story)
	}
	return exitCodes(cmd, map[int]string{exitFound: "no record matches"})
}

// readLine reads one line, and returns it without the newline.
func readLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(r).ReadString('\n')
	if line = strings.TrimRight(line, "\r\n"); line != "" {
		return line, nil
	}
	return "", err
}

// at(t) formats a time for a table.
func at(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format("2006-01-02 15:04:05.000")
}

// printStory prints a story for people. Times are in UTC.
func (e environment) printStory(s *records.Story) (err error) {
	say := func(format string, args ...any) { err = errors.Join(err, e.say(format, args...)) }
	fact := func(name, value string) {
		if value != "" {
			say("%-10s %s", name, value)
		}
	}
	for _, f := range s.Facts {
		fact(strings.ToLower(f.Label), f.Value)
	}
	fact("claimed", at(s.Claimed)+" UTC")
	fact("state", s.State)
	fact("sealed", s.Sealed)
	say("\n%s", s.Summary)
	section := func(title string, head []string, rows [][]string) {
		if len(rows) > 0 {
			say("\n%s", title)
			err = errors.Join(err, e.printTable(head, rows))
		}
	}
	rows := make([][]string, 0, len(s.Attempts))
	for i, a := range s.Attempts {
		rows = append(rows, []string{strconv.Itoa(i + 1), a.By, at(a.Began), a.Function, a.End, cmp.Or(a.Error, a.Note)})
	}
	section("Attempts", []string{"N", "BY", "BEGAN", "FUNCTION", "END", "ERROR"}, rows)
	rows = make([][]string, 0, len(s.Phases))
	for _, p := range s.Phases {
		took, result := "unknown", string(p.Result)
		if p.TookMS > 0 {
			took = (time.Duration(p.TookMS) * time.Millisecond).String()
		}
		if p.Unknown {
			result = "OUTCOME UNKNOWN: the call may have been made"
			if p.Reads != "" {
				result += "; the program expects a result like " + p.Reads
			}
		}
		rows = append(rows, []string{p.Name, at(p.Committed), took, result})
	}
	section("Phases", []string{"NAME", "COMMITTED", "TOOK", "RESULT"}, rows)
	rows = make([][]string, 0, len(s.Calls))
	for _, c := range s.Calls {
		name := c.Service
		if c.Step != "" {
			name += ", " + c.Step
		} else {
			name += fmt.Sprintf(" #%d", c.Number)
		}
		rows = append(rows, []string{name, c.Key, c.State, at(c.Since)})
	}
	section("Calls, with their derived keys", []string{"CALL", "KEY", "STATE", "SENT NO EARLIER THAN"}, rows)
	if s.CallsNote != "" {
		say("\nCalls: %s.", s.CallsNote)
	}
	rows = make([][]string, 0, len(s.Jobs))
	for _, j := range s.Jobs {
		state := j.State
		if !j.At.IsZero() {
			state += ", " + at(j.At)
		}
		rows = append(rows, []string{j.ID, j.Kind, j.Phase, state, strconv.Itoa(j.Tries), j.Error, string(j.Args)})
	}
	section("Jobs that are not delivered", []string{"ID", "KIND", "PHASE", "STATE", "TRIES", "ERROR", "ARGS"}, rows)
	if a := s.Answer; a != nil && a.Status == 0 {
		say("\nAnswer: sealed.")
	} else if a != nil {
		say("\nAnswer: %d, %d bytes %s.", a.Status, a.Bytes, a.Stored)
		for name, values := range a.Header {
			say("  %s: %s", name, strings.Join(values, ", "))
		}
		if a.Body != "" {
			say("  %s", a.Body)
		}
	}
	if r := s.Request; r != nil {
		line := cmp.Or(strings.TrimSpace(r.Method+" "+r.Path), "sealed")
		if r.Query != "" {
			line += "?" + r.Query
		}
		say("\nRequest, stored for the completer: %s", line)
		if r.Body != "" {
			say("  %s", r.Body)
		}
	}
	rows = make([][]string, 0, len(s.Decisions))
	for _, d := range s.Decisions {
		rows = append(rows, []string{at(d.At), d.By, d.What, d.From, d.To})
	}
	section("Decisions of people", []string{"AT", "BY", "DECISION", "FROM", "TO"}, rows)
	say("\nCost so far: %d writes; about %d write units for a record of about %d bytes.", s.Cost.Writes, s.Cost.Units, s.Cost.Bytes)
	rows = make([][]string, 0, len(s.Next))
	for _, n := range s.Next {
		when := "any time"
		if !n.When.IsZero() {
			when = at(n.When)
		}
		rows = append(rows, []string{when, n.Who, n.What, n.Command})
	}
	section("Next", []string{"WHEN", "WHO", "WHAT", "COMMAND"}, rows)
	return err
}
