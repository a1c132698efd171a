//go:build unix

package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// page is written by a run with CRASH_PAGE=1.
const page = "../crash-matrix.md"

// head is the commit that a run begins with.
func head(t *testing.T) string {
	t.Helper()
	commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(commit))
}

// write writes the page.
func (m *matrix) write(t *testing.T, e evidence) {
	t.Helper()
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# The crash matrix\n\n")
	p("A run of the test [TestCrashMatrix](crash/doc.go) writes this page. It is for readers who want to see what stands behind\n")
	p("[When the process dies](../docs/use/crashes.md): real processes meet every fault at every call that they make.\n\n")
	p("| the run | |\n| --- | --- |\n")
	p("| command | `make crash-matrix N=%d SEED=%d` |\n", m.requests, m.seed)
	p("| date | %s |\n", m.begun.UTC().Format(time.DateOnly+" 15:04 MST"))
	p("| commit | `%s` |\n", m.commit)
	p("| time | %d s |\n", e.Seconds)
	p("| requests, each with a key of its own | %d |\n", e.Requests)
	p("| crash points × faults | %d × %d, of which %d cells were played |\n", e.Points, e.Faults, e.Cells)
	p("| processes killed, stopped past their leases | %d, %d |\n", e.Kills, e.Stops)
	p("| requests with their retries, calls of the processes | %d, %d |\n", e.Posts, e.Calls)
	p("| waited for people, as they must | %d |\n", e.People)
	p("| **lost, doubled, wrong answers** | **%d, %d, %d** |\n\n", e.Lost, e.Doubled, e.Wrong)
	p("## How it is played\n\n")
	p("%s\n", played)
	p("## Cells\n\nA number is how many requests met that fault at that call. `-` is a fault that the call doesn't have. The columns:\n\n")
	for i, f := range faults {
		p("%d. %s: %s\n", i+1, f.name, f.says)
	}
	for _, path := range paths {
		p("\n### %s\n\n%s\n\n| crash point |", strings.ToUpper(path.name[:1])+path.name[1:], path.says)
		for i := range faults {
			p(" %d |", i+1)
		}
		p("\n| --- |%s\n", strings.Repeat(" ---: |", len(faults)))
		for _, pt := range m.points[path] {
			p("| %s |", pt)
			for _, f := range faults {
				switch {
				case f.on != nil && !f.on(pt.call):
					p(" - |")
				default:
					p(" %d |", m.counts[cell{path, pt, f}])
				}
			}
			p("\n")
		}
	}
	if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// played says on the page how a cell is played.
const played = `Each cell is a request with a key of its own, to processes of the real bootstrap, behind the Runtime API and the event source mappings of
` + "`samekey local`" + `, on DynamoDB Local. A proxy between each process and the world knows every call by its process, and applies the fault
when the call comes. The client then retries with the same key until it is answered, or leaves; worker, completer, sweep and consumer run.

For each request the test checks, outside of the processes:

- the entries in the users' table: exactly one of each kind. A handler gives its entry a new id each time that a phase runs, so a
  doubled effect is two entries;
- the provider: exactly one charge and one mail, under one key each, however many calls there were;
- the answer: the request's own, the same bytes when it is sent again, and 422 to another request under its key;
- the end: the record is done, its jobs are delivered, and it may expire. Where nobody can know if a call was made, and where the handler
  fails each time, the request waits for people, and nowhere else; it is then on the list, and is settled;
- every version of its record, on the stream: owner and version change by the rules, no lease is cut short, a stored answer never
  changes, and a record with work to do can't expire. While the scope of keys changes, at most one of a key's two records holds it.

At the end the effects of all requests are counted once more. [Testing](../docs/inside/proof.md) has the commands; a failure prints the command that
plays its cell again.
`
