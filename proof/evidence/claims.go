package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// claim is a line of the page.
type claim struct {
	name string // of its EVIDENCE line, too
	// claim is what a user relies on, and evidence what was done to break it.
	claim, evidence string
	command         string
	// figures are the names of the figures that the page shows, in their order.
	figures []string
	// finds are expressions with groups that are named as figures; nil: they are in an
	// EVIDENCE line.
	finds []*regexp.Regexp
	// aws begins the names of the claims of samekey prove that show it in an account; "": none.
	aws string
	// table introduces the table that its EVIDENCE line has; "": none.
	table string
}

var claims = []claim{
	{
		name:     "model",
		claim:    "The protocol loses nothing, does nothing twice and gives no wrong answer, in every state that it can reach",
		evidence: "Every state of a model within bounds is visited: crashes, late packets, clocks, zombies, a provider that forgets. Each rule is removed once, which breaks a promise",
		command:  "make model",
		figures:  []string{"states", "rules_removed"},
		finds:    expressions(`(?P<states>\d+) states in all`, `(?P<rules_removed>\d+) rules removed`),
	},
	{
		name:     "traces",
		claim:    "The code is the protocol of the model",
		evidence: "Random histories of the engine's code, with lost, late and doubled writes, crashes and ends of leases: each step of each history must be a step of the model",
		command:  "make traces",
		figures:  []string{"traces_accepted", "steps"},
		finds:    expressions(`(?P<traces_accepted>\d+) traces accepted, (?P<steps>\d+) steps`),
	},
	{
		name:     "simulation",
		claim:    "The whole application keeps its promises under every fault at once",
		evidence: "Engine, drain, completer, sweep, clients and a payment provider in virtual time, with seeded faults of every kind; a fault that never happens fails the run",
		command:  "make simulate",
		figures:  []string{"requests", "episodes", "faults"},
	},
	{
		name:     "crash-matrix",
		claim:    "Real processes lose nothing and do nothing twice, wherever they die",
		evidence: "Processes of API, worker and consumer meet each of the faults at each of their calls; effects are counted in the users' table and at the provider ([the matrix](../../proof/crash-matrix.md))",
		command:  "make crash-matrix N=3000",
		figures:  []string{"requests", "points", "faults", "kills", "lost", "doubled", "wrong"},
		aws:      "crash.",
	},
	{
		name:     "linearizability, DynamoDB Local",
		claim:    "The answers to the clients of a key have an order that explains them",
		evidence: "32 clients on 1,000 keys, with lost answers, late copies, conflicts and crashes; Porcupine looks for an order of single requests for each key",
		command:  "make linearizable",
		figures:  []string{"clients", "keys", "requests", "handler_runs"},
	},
	{
		name:     "schedules",
		claim:    "A handler runs once for its key, whatever the order of the calls of its clients",
		evidence: "The engine's code runs in every order of the store calls of two or three clients, with lost answers, late packets, conflicts and a clock that moves",
		command:  "make schedules",
		figures:  []string{"schedules", "runs"}, finds: expressions(`(?P<schedules>\d+) schedules in (?P<runs>\d+) runs`),
	},
	{
		name:     "tenants",
		claim:    "Nobody gets another tenant's answer, nor learns of it",
		evidence: "Random callers under equal keys, through every kind of event: each gets what the caller gets alone on a memory store. Another caller's name in an answer fails the run",
		command:  "TENANTTEST_N=100000 go test -C proof ./tenants -run '^TestTenantsInMemory$' -count=1 -v",
		figures:  []string{"requests", "leaks"}, finds: expressions(`(?P<requests>\d+) requests \(.*, (?P<leaks>\d+) leaks`),
	},
	{
		name:     "planted",
		claim:    "The proofs of the whole find bugs of which they don't know the line",
		evidence: "Ten bugs, one a layer, are planted one at a time; simulation, traces and crash matrix look for each. A bug that a proof misses fails the run, unless it is outside of the proof's subject",
		command:  "make planted",
		figures:  []string{"bugs", "found", "missed", "outside"},
		table: "## Planted bugs\n\nEach of the three proofs looks for each bug, in a size of minutes, and ends with its first finding. The time is that of its run until then, " +
			"with the build of the programs of the crash matrix. A bug is outside of a proof's subject for the reason given.",
	},
}

func expressions(all ...string) (res []*regexp.Regexp) {
	for _, e := range all {
		res = append(res, regexp.MustCompile(e))
	}
	return res
}

var evidenceLine = regexp.MustCompile(`EVIDENCE (\{.*\})`)

// read finds a claim's figures in what its command has printed, and its table.
func (c claim) read(out string) (all map[string]float64, table [][]string, _ error) {
	all = make(map[string]float64)
	for _, e := range c.finds {
		found := e.FindAllStringSubmatch(out, -1)
		if len(found) == 0 {
			return nil, nil, fmt.Errorf("it has printed nothing like %s", e)
		}
		for i, name := range e.SubexpNames()[1:] {
			n, err := strconv.ParseFloat(found[len(found)-1][i+1], 64)
			if err != nil {
				return nil, nil, err
			}
			all[name] = n
		}
	}
	for _, line := range evidenceLine.FindAllStringSubmatch(out, -1) {
		var v map[string]any
		var rows struct{ Table [][]string }
		if err := errors.Join(json.Unmarshal([]byte(line[1]), &v), json.Unmarshal([]byte(line[1]), &rows)); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", line[1], err)
		}
		if v["name"] != c.name {
			continue
		}
		table = rows.Table
		for name, f := range v {
			if n, ok := f.(float64); ok {
				all[name] = n
			}
		}
	}
	for _, name := range c.figures {
		if _, ok := all[name]; !ok {
			return nil, nil, errors.New("it has printed no figure " + name)
		}
	}
	if (c.table != "") != (len(table) > 1) {
		return nil, nil, fmt.Errorf("it has printed a table of %d rows", len(table))
	}
	return all, table, nil
}

// show returns the figures of a run in words: "1,200 requests, 0 lost".
func (c claim) show(figures map[string]float64) string {
	words := make([]string, len(c.figures))
	for i, name := range c.figures {
		words[i] = grouped(figures[name]) + " " + strings.ReplaceAll(name, "_", " ")
	}
	return strings.Join(words, ", ")
}

// grouped writes a number with commas between thousands.
func grouped(n float64) string {
	whole, rest, _ := strings.Cut(strconv.FormatFloat(n, 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		return whole + "." + rest
	}
	return whole
}
