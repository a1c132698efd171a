// Package names compares a program with the table's records before the program is
// deployed. It finds unfinished operations that the program doesn't fit, because the
// program lacks a phase or a call of the operation. The program's phases and calls are
// read from its lock file.
package names

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/samekey/samekey/cmd/samekey/internal/vet/lock"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/redact"
	"github.com/samekey/samekey/internal/state"
)

// Program holds the phases and calls of a program's handlers.
type Program struct{ handlers []handler }

type handler struct {
	name   string
	phases []*regexp.Regexp
	calls  []*regexp.Regexp
}

// Read returns the program that a lock file describes.
func Read(f *lock.File) *Program {
	p := &Program{}
	for pkg, handlers := range f.Packages {
		for name, phases := range handlers {
			h := handler{name: pkg + "." + name}
			for _, ph := range phases {
				h.phases = append(h.phases, pattern(ph.Name))
				for _, call := range ph.Calls {
					h.calls = append(h.calls, pattern(call))
				}
			}
			p.handlers = append(p.handlers, h)
		}
	}
	slices.SortFunc(p.handlers, func(a, b handler) int { return cmp.Compare(a.name, b.name) })
	return p
}

// Handlers returns the number of handlers.
func (p *Program) Handlers() int { return len(p.handlers) }

// pattern compiles a name in which * stands for a part that isn't constant.
func pattern(name string) *regexp.Regexp {
	parts := strings.Split(name, "*")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
}

func knows(all []*regexp.Regexp, name string) bool {
	return slices.ContainsFunc(all, func(r *regexp.Regexp) bool { return r.MatchString(name) })
}

// Danger is what happens to an operation that the program doesn't fit.
type Danger string

// The dangers.
const (
	Refused Danger = "refused" // the operation is blocked until the old program is back
	Twice   Danger = "twice"   // a call that may have been made is made again, under another key
)

// Judge returns "" if r is finished, or if one of the handlers has all of r's phases,
// and all calls that the operation may have made. Otherwise Judge takes the handler
// that has most of r's phases, and returns the danger, and a phase or call that this
// handler lacks. Judge tries all handlers, because a record doesn't name the handler's
// Go function.
func (p *Program) Judge(r *store.Record) (d Danger, unknown string) {
	if r.State == store.Done {
		return "", ""
	}
	if len(r.Phases) > 0 { // the result if the program has no handlers
		d, unknown = Refused, "phase "+r.Phases[0].Name
	}
	most := -1
	for _, h := range p.handlers {
		known := 0
		for known < len(r.Phases) && knows(h.phases, r.Phases[known].Name) {
			known++
		}
		danger, what := Danger(""), ""
		if known < len(r.Phases) {
			danger, what = Refused, "phase "+r.Phases[known].Name
		} else if call := h.unknownCall(r); call != "" {
			danger, what = Twice, "call "+call
		}
		if danger == "" {
			return "", ""
		}
		if known > most {
			most, d, unknown = known, danger, what
		}
	}
	return d, unknown
}

// unknownCall returns a call that r's operation may have made and that the handler
// lacks. If there is no such call, unknownCall returns "".
func (h handler) unknownCall(r *store.Record) string {
	for _, call := range r.Doubts {
		if state.IsMark(call) {
			continue // a mark doesn't name a call
		}
		name, _, _ := strings.Cut(call, "#")
		if !knows(h.calls, name) {
			return name
		}
	}
	return ""
}

// Row counts operations that have the same route and state, and for which the program
// lacks the same phase or call.
type Row struct {
	Danger  Danger    `json:"danger"`
	Unknown string    `json:"unknown"`
	Route   string    `json:"route,omitempty"`
	State   string    `json:"state"`
	Count   int       `json:"count"`
	Oldest  time.Time `json:"oldest"` // time of the oldest claim
	PK      string    `json:"pk"`     // partition key of the oldest operation
	Record  string    `json:"record"` // short name of the record with this partition key
}

// Report gathers operations that the program doesn't fit.
type Report struct {
	Handlers   int    `json:"handlers"`
	Seen       int64  `json:"seen"` // number of items read
	Open       int    `json:"open"` // number of unfinished operations: open or stuck
	Unreadable int    `json:"unreadable"`
	Rows       []*Row `json:"rows"`
}

// Add counts r's operation if it is unfinished. If the program doesn't fit the
// operation, Add also counts the operation in a row.
func (rep *Report) Add(p *Program, r *store.Record) {
	if r.State == store.Done {
		return
	}
	rep.Open++
	danger, unknown := p.Judge(r)
	if danger == "" {
		return
	}
	i := slices.IndexFunc(rep.Rows, func(row *Row) bool {
		return row.Danger == danger && row.Unknown == unknown && row.Route == r.Route && row.State == string(r.State)
	})
	if i < 0 {
		rep.Rows = append(rep.Rows, &Row{Danger: danger, Unknown: unknown, Route: r.Route, State: string(r.State), Oldest: r.Created, PK: r.PK, Record: redact.Record(r.PK)})
		i = len(rep.Rows) - 1
	}
	row := rep.Rows[i]
	row.Count++
	if r.Created.Before(row.Oldest) {
		row.Oldest, row.PK, row.Record = r.Created, r.PK, redact.Record(r.PK)
	}
}

// Misfits returns the number of operations that the program doesn't fit.
func (rep *Report) Misfits() (n int) {
	for _, row := range rep.Rows {
		n += row.Count
	}
	return n
}

// Sort orders the rows by danger, [Twice] first, and rows of equal danger by count, the
// largest first.
func (rep *Report) Sort() {
	slices.SortFunc(rep.Rows, func(a, b *Row) int {
		return cmp.Or(cmp.Compare(b.Danger, a.Danger), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Unknown, b.Unknown), cmp.Compare(a.Route, b.Route), cmp.Compare(a.State, b.State))
	})
}
