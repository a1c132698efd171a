package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// tables are the peers' part of the page.
func (p *Peers) tables() []table {
	if len(p.Races) == 0 || len(p.Breaks) == 0 {
		return nil
	}
	return []table{p.races(), p.breaks()}
}

func (p *Peers) races() table {
	versions := make([]string, len(p.Peers))
	for i, v := range p.Peers {
		versions[i] = fmt.Sprintf("%s %s with %s on %s", v.Name, v.Version, v.SDK, v.Runtime)
	}
	t := table{
		title: "Beside Powertools: times",
		text: fmt.Sprintf(`%s stores the same new request and replays it, with payload validation on, as Samekey does (%s, %s; load %.1f and %.1f). All take turns,
request by request, on the same DynamoDB Local, on tables without a stream: %s. A library's floors are in its own language: the calls that it makes,
sent by its SDK alone, and as many calls with the smallest possible items. The last ratio has the same calls sent by the SDK for Go as its floor: a
port of Powertools to Go makes these calls. Compare the ratios for the library's share. Compare the times for the whole stack of language, SDK and library.`,
			"Powertools for AWS Lambda", p.Run.Date, "`"+p.Run.Command+"`", p.Run.Load[0], p.Run.Load[1], strings.Join(versions, "; ")),
		head: []string{"request", "library", "p50", "p99", "over same calls", "over smallest items", "over same calls by Go", "bytes at rest"},
	}
	for _, r := range p.Races {
		byGo, size := "", ""
		if r.OverGo > 0 {
			byGo = fmt.Sprintf("%.2f", r.OverGo)
		}
		if r.Bytes > 0 {
			size = thousands(r.Bytes)
		}
		t.rows = append(t.rows, []string{
			r.Does, r.Who, micro(r.Library.P50), micro(r.Library.P99), fmt.Sprintf("%.2f", r.OverSame), fmt.Sprintf("%.2f", r.OverSmallest), byGo, size,
		})
	}
	return t
}

func (p *Peers) breaks() table {
	t := table{
		title: "Beside Powertools: what breaks",
		text: "The same scenarios, played for real with each library on DynamoDB Local. *Clients get* has the answers in order; a name is the error that leaves " +
			"the handler, a 500 or 502 for its client. A test plays Samekey's part at every commit.",
		head: []string{"scenario", "library", "clients get", "handlers ran", "broken"},
	}
	for _, s := range scenarios {
		does := s.does
		for _, b := range p.Breaks {
			if b.Scenario != s.name {
				continue
			}
			var answers []string
			for _, a := range b.Answers {
				answers = append(answers, a[0]+": "+short32(a[1]))
			}
			broken := b.broken()
			if broken == "" {
				broken = "nothing"
			}
			t.rows = append(t.rows, []string{does, b.Who, strings.Join(answers, "; "), strconv.Itoa(b.Runs), broken})
			does = ""
		}
	}
	return t
}

// short32 is an answer as the page shows it; of a large answer the status.
func short32(answer string) string {
	if status, body, ok := strings.Cut(answer, ", "); ok && strings.HasPrefix(body, "x") {
		return status
	}
	return answer
}

// durable compares prices with those of durable functions.
func (r *Results) durable() table {
	d := r.Durable
	t := table{
		title: "Beside AWS Lambda durable functions: prices",
		text: fmt.Sprintf(`These figures are documented, not measured: $%v for a million operations (%s; read on %s). A run with k steps takes k operations
and one for its start. A step with its checkpoint takes %v to %v ms (%s). Samekey's commit of a phase is one write of DynamoDB. Dollars are for a
million runs, without Lambda's time. Durable functions wait for up to a year, and need no table. By default their steps run at least once, and a checkpoint isn't
in one transaction with your writes.`,
			d.Price, d.Source, d.Date, d.Steps[0], d.Steps[1], d.StepsSource),
		head: []string{"steps", "durable function", "Samekey, phases without writes", "Samekey, a write of yours in each phase", "its write units for your items"},
	}
	for _, k := range []int{1, 2, 5} {
		plain, writes := r.path(fmt.Sprintf("phases-%d-no-writes", k)), r.path(fmt.Sprint("phases-", k))
		t.rows = append(t.rows, []string{strconv.Itoa(k), number(d.of(k)), number(plain.Dollars), number(writes.Dollars), number(writes.Theirs)})
	}
	return t
}

// path is a measured path; zero for an unknown id.
func (r *Results) path(id string) Path {
	if i := slices.IndexFunc(r.Paths, func(p Path) bool { return p.ID == id }); i >= 0 {
		return r.Paths[i]
	}
	return Path{}
}

// smallest is the race with the smallest item, other than Samekey's.
func (p *Peers) smallest() (found Race) {
	for _, r := range p.Races {
		if r.Who != "Samekey" && r.Bytes > 0 && (found.Bytes == 0 || r.Bytes < found.Bytes) {
			found = r
		}
	}
	return found
}
