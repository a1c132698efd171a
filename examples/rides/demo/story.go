package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const (
	jane = "jane@example.com"
	omar = "omar@example.com"
)

var errInterrupted = errors.New("interrupted")

// story plays and checks.
type story struct {
	*stage
	stack  *stack
	booked int // bookings so far
	checks []outcome
	costs  []cost
	killed map[string]int // processes, by function
	counts []string       // lines of the table of processes
}

type outcome struct {
	what string
	ok   bool
	why  string // what happened instead
}

// tell plays all scenes, until an error.
func (s *story) tell(ctx context.Context) error {
	s.killed = make(map[string]int)
	fmt.Println("Building the functions and starting them (make local) …")
	var err error
	if s.stack, err = s.up(ctx, "demo"); err != nil {
		return err
	}
	for _, play := range []func(context.Context) error{s.costsOfAll, s.murphy, s.kills, s.nothingElse, s.processes} {
		if err := play(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
	}
	return s.stack.down()
}

func (s *story) scene(title string) { fmt.Printf("\n%s\n", title) }

func (s *story) check(what string, ok bool, otherwise string) {
	s.checks = append(s.checks, outcome{what, ok, otherwise})
	if !ok {
		fmt.Printf("  FAIL: %s: %s\n", what, otherwise)
	}
}

// kill kills the function's process that got work last.
func (s *story) kill(ctx context.Context, name string) {
	if err := s.stack.kill(ctx, name); err != nil {
		s.check("a process is killed", false, err.Error())
		return
	}
	s.killed[name]++
}

// nothingElse checks the tables and the world as a whole, for traces that belong to
// no booking.
func (s *story) nothingElse(ctx context.Context) error {
	s.scene("In the end: nothing is left over.")
	s.check("in the end: no operation is open, no job undelivered", s.quiet(ctx), "there are some")
	var paid, all int
	var table []struct {
		Charge string `dynamodbav:"charge_id"`
	}
	if err := s.scan(ctx, s.stack.name+"-RidesTable", &table); err != nil {
		return err
	}
	for _, r := range table {
		if all++; r.Charge != "" {
			paid++
		}
	}
	charges, err := s.charges(ctx)
	if err != nil {
		return err
	}
	var failed []any
	if err := call(ctx, "GET", s.stack.at.Control+"/failed", nil, &failed); err != nil {
		return err
	}
	calls, keys := 0, make(map[string]bool)
	for _, c := range charges {
		calls += c.Calls
		keys[c.Key] = true
	}
	fmt.Printf("  %d rides, %d of them paid; %d charges, which the provider was asked for %d times\n", all, paid, len(charges), calls)
	s.check("in the end: as many charges as paid rides", len(charges) == paid, fmt.Sprintf("%d charges, %d paid rides", len(charges), paid))
	s.check("in the end: each charge has a key of its own", len(keys) == len(charges), fmt.Sprintf("%d keys", len(keys)))
	s.check("in the end: nothing was given up", len(failed) == 0, fmt.Sprint(failed...))
	return nil
}

// processes counts the processes of each function.
func (s *story) processes(ctx context.Context) error {
	all, err := s.stack.look(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b function) int { return strings.Compare(a.Name, b.Name) })
	s.stack.mu.Lock()
	defer s.stack.mu.Unlock()
	for _, f := range all {
		s.counts = append(s.counts, fmt.Sprintf("  %-12s%12d%11d%9d", f.Name, f.Invocations, len(s.stack.processes[f.Name]), s.killed[f.Name]))
	}
	return nil
}

// summary prints the tables, and reports whether all checks have passed.
func (s *story) summary() bool {
	fmt.Printf("\nProcesses   invocations  processes   killed\n%s\n", strings.Join(s.counts, "\n"))
	fmt.Println("\nDynamoDB calls")
	for _, c := range s.costs {
		fmt.Printf("  %d  %-62s %s\n", c.total(), c.what, c.list())
	}
	fmt.Println("\nChecks")
	ok := true
	for _, c := range s.checks {
		mark := "ok  "
		if !c.ok {
			mark, ok = "FAIL", false
		}
		fmt.Printf("  %s  %s\n", mark, c.what)
		if !c.ok {
			fmt.Printf("        %s\n", c.why)
		}
	}
	return ok
}
