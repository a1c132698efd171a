package ui

import (
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/cmd/samekey/internal/records"
	"github.com/samekey/samekey/internal/state"
)

// Kinds of rows, for the colours, counts and chart of the page.
const (
	kindDone    = "done"
	kindOpen    = "open"
	kindWaiting = "waiting" // waits for people
)

// forPeople reports whether a record waits for people, rather than for a completer, a
// client or a drain.
func (r Row) forPeople() bool {
	return slices.ContainsFunc(r.Reasons, func(why string) bool { return slices.Contains(state.ReasonNames(true), why) })
}

func (r Row) kind() string {
	switch {
	case r.forPeople():
		return kindWaiting
	case r.State == "done":
		return kindDone
	default:
		return kindOpen
	}
}

// filter selects rows; its zero value selects all.
type filter struct {
	kind, reason, route string
	caller              string // typed by a person; records.Means compares it with the callers of rows
	from, to            int64  // epoch ms; 0 = no limit
	oldestFirst         bool
	page, size          int
}

const maxPage = 10_000

func filterOf(q url.Values) filter {
	number := func(name string, otherwise, most int64) int64 {
		n, err := strconv.ParseInt(q.Get(name), 10, 64)
		if err != nil || n < 0 {
			return otherwise
		}
		return min(n, most)
	}
	const always = 1 << 53
	return filter{
		kind: q.Get("kind"), reason: q.Get("reason"), route: q.Get("route"), caller: q.Get("caller"), from: number("from", 0, always), to: number("to", 0, always),
		oldestFirst: q.Get("order") == "oldest", page: int(number("page", 0, 1<<20)), size: max(1, int(number("size", 100, maxPage))),
	}
}

func (f filter) selects(r Row) bool {
	return (f.kind == "" || f.kind == r.kind()) && (f.reason == "" || slices.Contains(r.Reasons, f.reason)) && (f.route == "" || f.route == plain.Text(r.Route)) &&
		records.Means(f.caller, r.Caller) &&
		(f.from == 0 || r.Created >= f.from) && (f.to == 0 || r.Created < f.to)
}

// listing is one page of the list of rows, with the counts that are shown beside the
// filters.
type listing struct {
	Version int            `json:"version"`
	Total   int            `json:"total"`   // rows in memory
	Dropped bool           `json:"dropped"` // older rows are not shown
	Matched int            `json:"matched"`
	Page    int            `json:"page"`
	Pages   int            `json:"pages"`
	Rows    []Row          `json:"rows"`
	Kinds   map[string]int `json:"kinds"`
	Counted map[string]int `json:"reasons"`
	Routes  []counted      `json:"routes"`
	Chart   chart          `json:"chart"`
}

type counted struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// chart counts the matching rows by time and kind.
type chart struct {
	From    int64    `json:"from"`
	Step    int64    `json:"step"` // ms
	Buckets [][3]int `json:"buckets"`
}

const (
	chartBuckets = 60
	maxRoutes    = 100
)

// list returns page number f.page of the rows that match f. rows[0] must be the newest
// row.
func list(rows []Row, f filter) listing {
	l := listing{Total: len(rows), Kinds: make(map[string]int), Counted: make(map[string]int), Rows: []Row{}, Page: f.page}
	routes := make(map[string]int)
	var matched []Row
	for _, r := range rows {
		l.Kinds[r.kind()]++
		for _, why := range r.Reasons {
			l.Counted[why]++
		}
		if r.Route != "" {
			routes[r.Route]++
		}
		if f.selects(r) {
			matched = append(matched, r)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(routes)) {
		l.Routes = append(l.Routes, counted{name, routes[name]})
	}
	slices.SortStableFunc(l.Routes, func(a, b counted) int { return b.Count - a.Count })
	l.Routes = l.Routes[:min(len(l.Routes), maxRoutes)]
	l.Matched, l.Pages = len(matched), max(1, (len(matched)+f.size-1)/f.size)
	l.Page = min(l.Page, l.Pages-1)
	l.Chart = chartOf(matched)
	if f.oldestFirst {
		slices.Reverse(matched)
	}
	l.Rows = append(l.Rows, matched[l.Page*f.size:min(len(matched), (l.Page+1)*f.size)]...)
	return l
}

// chartOf counts rows in equal intervals of time. rows[0] is the newest.
func chartOf(rows []Row) chart {
	first := slices.IndexFunc(rows, func(r Row) bool { return r.Created > 0 })
	if first < 0 {
		return chart{}
	}
	oldest := rows[first].Created
	for _, r := range rows {
		if r.Created > 0 {
			oldest = min(oldest, r.Created)
		}
	}
	c := chart{From: oldest, Step: max(1000, (rows[first].Created-oldest)/chartBuckets+1), Buckets: make([][3]int, chartBuckets)}
	for _, r := range rows {
		if r.Created > 0 {
			kind := slices.Index([]string{kindDone, kindOpen, kindWaiting}, r.kind())
			c.Buckets[(r.Created-oldest)/c.Step][kind]++
		}
	}
	return c
}
