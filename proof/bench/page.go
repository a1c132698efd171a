package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table is a part of the page, and of the printed table.
type table struct {
	title string
	text  string // before the rows, on the page only
	head  []string
	rows  [][]string
	after string // behind the rows, on the page only
}

// page is proof/bench/README.md.
func (r *Results) page() string {
	var b strings.Builder
	b.WriteString("# Performance and costs\n\n<!-- written by `make bench`, `make bench-peers` and `make bench-growth`: don't edit -->\n\n")
	b.WriteString(r.preface())
	b.WriteString(r.meaning())
	for _, t := range r.tables() {
		fmt.Fprintf(&b, "\n## %s\n\n", t.title)
		if t.text != "" {
			fmt.Fprintf(&b, "%s\n\n", t.text)
		}
		fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat(" --- |", len(t.head)))
		for _, row := range t.rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
		if t.after != "" {
			fmt.Fprintf(&b, "\n%s\n", t.after)
		}
	}
	b.WriteString(r.losses())
	return b.String()
}

// print is the same as one table.
func (r *Results) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, t := range r.tables() {
		fmt.Fprintf(w, "\n%s\n", strings.ToUpper(t.title))
		fmt.Fprintln(w, strings.Join(t.head, "\t"))
		for _, row := range t.rows {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	_ = w.Flush()
}

func (r *Results) preface() string {
	return fmt.Sprintf(`Runs measure everything on this page: %s writes its figures to [proof/bench/results.json](results.json), %s to
[proof/bench/peers.json](peers.json), %s to [proof/bench/growth.json](growth.json) and [proof/bench/passes.json](passes.json), and each writes this page from the four. Calls, units, bytes and dollars are counted, and a test compares them with the code at every commit. Times depend on the machine. Each time
is therefore taken in turns with a *floor*, the same work without the library, in the same run; compare the ratios. Nothing here was measured
on AWS: there each call also takes the network's time.

The times are of %s (%s), on %s (%d processors, %s, %s). The machine's load was %.1f before the run and %.1f after it; on a
quiet machine it is below %d. SHA-256 of 8 KB took %s.
`, "`make bench`", "`make bench-peers`", "`make bench-growth`", r.Run.Date, "`"+r.Run.Command+"`", r.Run.CPU, r.Run.CPUs, r.Run.OS, r.Run.Go, r.Run.Load[0], r.Run.Load[1], r.Run.CPUs, micro(r.Run.Yardstick))
}

// meaning says what the most important figures are to a user.
func (r *Results) meaning() string {
	isNew, again := r.path("new"), r.path("replay")
	if isNew.Dollars == 0 || len(r.Latency) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## What the figures mean\n\n")
	const month = 30 * 24 * 3600 * 10 / 1e6 // millions of requests at 10 a second
	fmt.Fprintf(&b, "- **A month's bill.** 10 requests a second are %s million a month. Their records cost $%s if all are new, and $%s more for one retry each.\n",
		number(month), number(month*isNew.Dollars), number(month*again.Dollars))
	fmt.Fprintf(&b, "- **Calls, not processor time, make a request slower.** A new request makes %d calls to DynamoDB, a replay %d. On AWS each is a network's round trip, a few "+
		"milliseconds. Over those calls the library's share is a ratio of %.2f for new requests and %.2f for replays here.\n", total(isNew.Calls), total(again.Calls), r.Latency[0].OverSame, r.Latency[1].OverSame)
	fmt.Fprintf(&b, "- **Your own writes count double in a phase.** An item of up to 1 KB takes 2 write units in a transaction instead of 1: $%s for a million instead of $%s.\n",
		number(2*r.Prices.Write), number(r.Prices.Write))
	if c := r.Recovery; c.Samples > 0 {
		b.WriteString("- **After a kill a client waits for the rest of the lease**: the invocation's timeout and a margin. Short timeouts make recovery fast.\n")
	}
	return b.String()
}

func total(calls map[string]int) (n int) {
	for _, c := range calls {
		n += c
	}
	return n
}

func (r *Results) tables() []table {
	all := r.costs()
	for _, t := range []table{r.inline(), r.bodies(), r.records(), r.latency(), r.library(), r.sdk(), r.start(), r.sizes(), r.streams(), r.recovery()} {
		if len(t.rows) > 0 {
			all = append(all, t)
		}
	}
	all = append(all, r.Peers.tables()...)
	if len(r.Paths) > 0 {
		all = append(all, r.durable())
	}
	all = append(all, r.Growth.tables()...)
	if len(r.Passes.Passes) > 0 {
		all = append(all, r.Passes.table(r.Prices))
	}
	return all
}

// costs has a table for each group of paths.
func (r *Results) costs() []table {
	groups := map[string]string{
		"A request": fmt.Sprintf(`A path is a way that a request goes. Its units are those of its record: one write unit for each begun KB, one read unit for each begun 4 KB, half
of it for an eventually consistent read, and double in a transaction. A refused write costs the units of the item that is there. *Your units* are
for your own small items that a phase writes: in a transaction they count double, 2 instead of 1. *Dollars* are for a million requests, without your
items, by the on-demand prices of %s (%s; %s; read on %s): $%v for a million write units, $%v for a million read units.
[proof/bench/prices.json](prices.json) holds them.`, r.Prices.Region, r.Prices.Source, r.Prices.Mode, r.Prices.Date, r.Prices.Write, r.Prices.Read),
		"Phases: k commits, the last with the answer": "Each phase with a write of yours is a transaction of the record and your items.",
		"Large answers and stored requests": "A body above 4 KB after compression has an item of its own beside the record. A body that doesn't compress, as here, is the worst " +
			"case. A stored request is emptied after the answer at the full price of its size, or left to TTL, by `dynamo.Options.KeepRequests`, at rest for that time.",
		"After failures": "The phases that an earlier attempt committed are in the record, and aren't paid again.",
	}
	var all []table
	for _, p := range r.Paths {
		if n := len(all); n == 0 || all[n-1].title != "Costs: "+p.Group {
			all = append(all, table{
				title: "Costs: " + p.Group, text: groups[p.Group],
				head: []string{"path", "DynamoDB calls", "write units", "read units", "your units", "bytes at rest", "dollars a million"},
			})
		}
		t := &all[len(all)-1]
		t.rows = append(t.rows, []string{p.Does, calls(p.Calls), number(p.Write), number(p.Read), number(p.Theirs), thousands(p.Bytes), fmt.Sprintf("%.4g", p.Dollars)})
	}
	return all
}

func calls(all map[string]int) string {
	if len(all) == 0 {
		return "none"
	}
	var names []string
	for name, n := range all {
		if n > 1 {
			name += " × " + strconv.Itoa(n)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func (r *Results) records() table {
	t := table{
		title: "Size of a record",
		text: "A record of at most 1,024 bytes costs one unit a write. The smallest possible item has a key, a state and the body only: it can't tell callers, " +
			"bodies or attempts apart.",
		head: []string{"answer, bytes", "record while the handler runs", "record with the answer", "smallest possible item", "ratio"},
	}
	for _, s := range r.Records {
		t.rows = append(t.rows, []string{thousands(s.Answer), thousands(s.Claimed), thousands(s.Done), thousands(s.Smallest), fmt.Sprintf("%.2f", float64(s.Done)/float64(s.Smallest))})
	}
	return t
}

var versusHead = []string{"request", "library p50", "library p99", "same calls p50", "same calls p99", "smallest items p50", "smallest items p99", "over same calls", "over smallest items"}

func versusRows(all []Versus) (rows [][]string) {
	for _, v := range all {
		rows = append(rows, []string{
			v.Does, micro(v.Library.P50), micro(v.Library.P99), micro(v.Same.P50), micro(v.Same.P99), micro(v.Smallest.P50), micro(v.Smallest.P99),
			fmt.Sprintf("%.2f", v.OverSame), fmt.Sprintf("%.2f", v.OverSmallest),
		})
	}
	return rows
}

func (r *Results) latency() table {
	samples := 0
	if len(r.Latency) > 0 {
		samples = r.Latency[0].Samples
	}
	return table{
		title: "Time of a request on DynamoDB Local",
		text: fmt.Sprintf("Each of %s requests is followed by its floors: the same calls sent by the SDK alone, and as many calls with the smallest possible items. "+
			"A ratio of 1.05 says that a request with Samekey takes 5 %% longer than its own calls.", thousands(samples)),
		head: versusHead, rows: versusRows(r.Latency),
	}
}

func (r *Results) sdk() table {
	t := table{
		title: "Processor time with the SDK",
		text: "The same comparison over a transport that answers at once: the library's and the SDK's work without any network. This is the part of a request " +
			"that you pay as Lambda's time in any case. The floors' client is the SDK's own: what `dynamo.Tune` adds to a call is the library's.",
		head: append(slices.Clone(versusHead), "allocations: library, same, smallest"), rows: versusRows(r.SDK),
	}
	for i, v := range r.SDK {
		t.rows[i] = append(t.rows[i], fmt.Sprintf("%d, %d, %d", v.Objects[0], v.Objects[1], v.Objects[2]))
	}
	return t
}

func (r *Results) library() table {
	t := table{
		title: "The library alone",
		text: "Time and allocations of the library itself: DynamoDB and the SDK are a stub. *In a loop* is the best case. *In situ* is nearer to a Lambda function: " +
			"the request comes after 2 ms of other work that has emptied the processor's caches. The last column is the yardstick (SHA-256 of 8 KB), taken " +
			"in turns with it.",
		head: []string{"request", "answer, bytes", "allocations", "allocated bytes", "in a loop p50", "in a loop p99", "in situ p50", "in situ p99", "yardstick in situ p50"},
	}
	for _, l := range r.Library {
		t.rows = append(t.rows, []string{
			l.Does, thousands(l.Answer), strconv.Itoa(l.Objects), thousands(l.Bytes), micro(l.Hot.P50), micro(l.Hot.P99), micro(l.InSitu.P50), micro(l.InSitu.P99), micro(l.Yardstick.P50),
		})
	}
	return t
}

func (r *Results) start() table {
	t := table{
		title: "Cold start",
		text: "A new process of the deployed program, on this machine: from its start until it asks Lambda for the first event, and until it has answered it. " +
			"DynamoDB is a stub that answers at once. The two programs are started in turns. The difference is the time that a cold start takes longer.",
		head: []string{"program", "starts", "to first next p50", "p99", "to first answer p50", "p99"},
	}
	for _, s := range r.Start {
		t.rows = append(t.rows, []string{s.Program, strconv.Itoa(s.Samples), micro(s.Next.P50), micro(s.Next.P99), micro(s.Answer.P50), micro(s.Answer.P99)})
	}
	if len(r.Start) == 2 {
		t.rows = append(t.rows, []string{"difference", "", micro(r.Start[0].Next.P50 - r.Start[1].Next.P50), "", micro(r.Start[0].Answer.P50 - r.Start[1].Answer.P50), ""})
	}
	return t
}

func (r *Results) sizes() table {
	t := table{
		title: "Size of the programs",
		text:  "Bootstraps for arm64, as `make build` makes them. Lambda reads them at a cold start.",
		head:  []string{"program", "MB", "over the bare handler, MB"},
	}
	for i, s := range r.Sizes {
		over := ""
		if i > 0 {
			over = fmt.Sprintf("%+.2f", megabytes(s.Bytes)-megabytes(r.Sizes[0].Bytes))
		}
		t.rows = append(t.rows, []string{s.Program, fmt.Sprintf("%.2f", megabytes(s.Bytes)), over})
	}
	return t
}

func (r *Results) streams() table {
	t := table{
		title: "Background functions",
		text:  "Stream records a second in one process, in batches of 100, in the median of the batches. The floor sends the same updates by the SDK, 8 at once as the drain does.",
		head:  []string{"function", "on", "records", "records a second", "floor", "ratio"},
	}
	for _, s := range r.Streams {
		floor, ratio := "", ""
		if s.Floor > 0 {
			floor, ratio = thousands(int(s.Floor)), fmt.Sprintf("%.2f", s.PerSecond/s.Floor)
		}
		t.rows = append(t.rows, []string{s.Does, s.On, thousands(s.Records), thousands(int(s.PerSecond)), floor, ratio})
	}
	return t
}

func (r *Results) recovery() table {
	t := table{
		title: "Recovery after a kill",
		text: "An attempt is killed at the beginning of its handler, after its claim. Its client retries, and obeys Retry-After. The bound is the rest of the " +
			"invocation's time, the lease's margin, and one more second: Retry-After is in whole seconds. The calls' own time comes on top. " +
			"The completer comes after its grace; [the crash matrix](../crash-matrix.md) has it, with real processes.",
		head: []string{"kills", "the invocation's time", "margin", "bound", "from the kill to the answer p50", "p99"},
	}
	if c := r.Recovery; c.Samples > 0 {
		t.rows = [][]string{{strconv.Itoa(c.Samples), micro(c.Deadline), micro(c.Margin), micro(c.Bound), micro(c.Answer.P50), micro(c.Answer.P99)}}
	}
	return t
}

// losses says where Samekey costs more than something simpler, with the run's figures.
func (r *Results) losses() string {
	path := r.path
	var b strings.Builder
	b.WriteString("\n## Where Samekey loses\n\n")
	if len(r.Paths) > 0 {
		fmt.Fprintf(&b, "- A replay is a refused write: it costs the record's size in write units, %s dollars a million for a small record. A retry that says so "+
			"(`idem/client`) is a read: %s. A new request that says so by mistake costs %s more.\n",
			number(path("replay").Dollars), number(path("replay-marked").Dollars), number(path("new-marked").Dollars-path("new").Dollars))
		fmt.Fprintf(&b, "- A stored request of 20 KB makes a new request %s times as dear: %s dollars a million instead of %s. Left to TTL (`KeepRequests`), it costs %s.\n",
			number(path("resumable-20KB").Dollars/path("resumable").Dollars), number(path("resumable-20KB").Dollars), number(path("resumable").Dollars),
			number(path("resumable-20KB-left").Dollars))
		fmt.Fprintf(&b, "- Each phase with a write of yours costs %s dollars a million for the record, and your items cost double.\n",
			number((path("phases-5").Dollars-path("phases-2").Dollars)/3))
	}
	if i := slices.IndexFunc(r.Records, func(s Size) bool { return s.Answer == answerSize }); i >= 0 {
		s := r.Records[i]
		fmt.Fprintf(&b, "- A record of an answer of %d bytes has %d bytes, %d more than the smallest possible item.\n", s.Answer, s.Done, s.Done-s.Smallest)
	}
	slowest := slices.MaxFunc(append([]Versus{{}}, r.Latency...), func(a, b Versus) int { return cmp.Compare(a.OverSmallest, b.OverSmallest) })
	if slowest.Does != "" {
		fmt.Fprintf(&b, "- On DynamoDB Local, a %s takes %.2f times as long as calls with the smallest possible items.\n",
			map[string]string{"new": "new request", "replay": "replay"}[slowest.Does], slowest.OverSmallest)
	}
	if cheapest := r.Peers.smallest(); cheapest.Bytes > 0 {
		fmt.Fprintf(&b, "- An item of %s has %d bytes for the same answer: it keeps neither the caller, nor the request's id, nor an owner.\n", cheapest.Who, cheapest.Bytes)
	}
	if at, dollars, later := r.Growth.dearSmall(); dollars > later {
		fmt.Fprintf(&b, "- A replay of an answer of %s that doesn't compress is refused at the price of its whole record: %s dollars a million. One of 64 KB costs %s, since "+
			"its body isn't in the record. [Answers in the record, or beside it](#costs-answers-in-the-record-or-beside-it) has the ways out.\n", size(at), number(dollars), number(later))
	}
	b.WriteString("- An answer above `MaxBody` (256 KB) isn't kept unless you raise the limit: a retry gets 410.\n" +
		"- After a crash the work continues with the client's retry, or with the completer after the lease and its grace of 5 minutes. A durable " +
		"function continues by itself.\n")
	return b.String()
}

// micro is a time in ns with a unit to read.
func micro(ns float64) string {
	switch v := ns / 1e3; {
	case v >= 1e6:
		return fmt.Sprintf("%.2f s", v/1e6)
	case v >= 1000 || v <= -1000:
		return fmt.Sprintf("%.2f ms", v/1e3)
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f µs", v)
	default:
		return fmt.Sprintf("%.1f µs", v)
	}
}

func number(v float64) string { return strconv.FormatFloat(float64(int(v*100+0.5))/100, 'f', -1, 64) }

// thousands is n with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
