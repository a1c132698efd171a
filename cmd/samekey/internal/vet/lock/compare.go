package lock

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Danger is what a change can do to operations that began before it.
type Danger int

const (
	// Refused means that operations are blocked or stuck until a person acts.
	Refused Danger = iota
	// Twice means that operations may make a call again under another key, so that the
	// provider carries out the call twice.
	Twice
	// Incomparable means that retries of all operations, even of finished ones, are
	// refused until the program knows the former fingerprint.
	Incomparable
	// New means that a retry of an operation, even of a finished one, runs from the start
	// as a new operation.
	New
)

// Change is a change of a handler or an engine that endangers operations that began before
// it.
type Change struct {
	Danger  Danger
	Handler string         // name of the handler, or of the function that makes the engine
	Pos     token.Position // position in the program; not valid if the handler is removed
	Message string
}

// guide is the address of the page that says how to deploy changes of handlers and engines.
const guide = "https://github.com/samekey/samekey/blob/main/docs/operate/changes.md#"

// fates has a text for each danger: what happens, and how to prevent it.
var fates = map[Danger]string{
	Refused: "open operations may be blocked until the old version is back. Keep the old phases for open operations: " + guide + "keep-the-old-phases",
	Twice:   "an open operation may make the call twice. Keep the old phases for open operations: " + guide + "keep-the-old-phases",
	Incomparable: "retries of earlier requests are refused with 503. Keep the old fingerprint for two releases (Fingerprint.Known): " +
		guide + "change-the-meaning-of-a-key",
	New: "a retry of an earlier request runs as a new operation, and the work is done twice. How to change the meaning of a key: " + guide + "change-the-meaning-of-a-key",
}

func (c Change) String() string {
	where := ""
	if c.Pos.IsValid() {
		where = c.Pos.String() + ": "
	}
	return fmt.Sprintf("%slock: %s: %s: %s", where, c.Handler, c.Message, fates[c.Danger])
}

// Compare compares the file with the program, and returns the changes that endanger
// earlier operations. It leaves out handlers of packages that exist but were not
// loaded. A renamed handler is recognised by its phases.
func (f *File) Compare(program Program, loaded, gone func(pkg string) bool) (all []Change) {
	now := program.Handlers
	current := make(map[string]Handler)
	for _, h := range now {
		current[h.Package+"."+h.Name] = h
	}
	for _, pkg := range slices.Sorted(maps.Keys(f.Packages)) {
		if !loaded(pkg) && !gone(pkg) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(f.Packages[pkg])) {
			was, full := f.Packages[pkg][name], pkg+"."+name
			is, ok := current[full]
			if !ok {
				is, ok = f.renamed(was, now)
			}
			if !ok {
				all = append(all, Change{Handler: full, Message: "the handler is removed, with its phases " + list(phaseNames(was))})
				continue
			}
			all = append(all, compare(full, was, is)...)
		}
	}
	return append(all, f.compareEngines(program.Engines)...)
}

// File.renamed finds a new handler that can continue the phases of a removed handler.
func (f *File) renamed(was []Phase, now []Handler) (Handler, bool) {
	for _, h := range now {
		if _, known := f.Packages[h.Package][h.Name]; !known && len(compare("", was, h)) == 0 {
			return h, true
		}
	}
	return Handler{}, false
}

func phaseNames(phases []Phase) []string {
	names := make([]string, len(phases))
	for i, p := range phases {
		names[i] = p.Name
	}
	return names
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, ", ")
}

func compare(handler string, was []Phase, is Handler) (all []Change) {
	add := func(d Danger, format string, args ...any) {
		all = append(all, Change{d, handler, is.Pos, fmt.Sprintf(format, args...)})
	}
	at := match(was, is.Phases)
	var added []int
	for j := range is.Phases {
		if !slices.Contains(at, j) {
			added = append(added, j)
		}
	}
	for i, p := range was {
		if at[i] >= 0 {
			continue
		}
		if j := instead(p, at, i, added, is.Phases); j >= 0 {
			add(Refused, "the phase %q is now called %q", p.Name, is.Phases[j].Name)
			added = slices.DeleteFunc(added, func(k int) bool { return k == j })
		} else {
			add(Refused, "the phase %q is removed", p.Name)
		}
	}
	for _, j := range added {
		for i := range was {
			if at[i] >= 0 && is.Before(j, at[i]) && !is.Before(at[i], j) {
				add(Refused, "the phase %q is added before %q", is.Phases[j].Name, was[i].Name)
				break
			}
		}
	}
	for i := range was {
		for k := i + 1; k < len(was); k++ {
			if a, b := at[i], at[k]; a >= 0 && b >= 0 && is.Before(b, a) && !is.Before(a, b) {
				add(Refused, "the phase %q now runs before %q", was[k].Name, was[i].Name)
			}
		}
	}
	for i, p := range was {
		if at[i] >= 0 {
			comparePhase(p, is.Phases[at[i]], add)
		}
	}
	return all
}

// match returns, for each phase in was, the index in is of the phase with the same
// name; -1 if there is none. If a name occurs several times, the first phase in was is
// paired with the first in is, the second with the second, and so on.
func match(was, is []Phase) []int {
	at := make([]int, len(was))
	taken := make(map[int]bool)
	for i, p := range was {
		at[i] = slices.IndexFunc(is, func(q Phase) bool { return q.Name == p.Name })
		for at[i] >= 0 && taken[at[i]] {
			from := at[i] + 1
			next := slices.IndexFunc(is[from:], func(q Phase) bool { return q.Name == p.Name })
			if at[i] = -1; next >= 0 {
				at[i] = from + next
			}
		}
		taken[at[i]] = true
	}
	return at
}

// instead returns the index of the added phase that has the place and the kind of the
// removed phase p; -1 if there is none.
func instead(p Phase, at []int, i int, added []int, is []Phase) int {
	after, before := -1, len(is)
	for _, k := range at[:i] {
		after = max(after, k)
	}
	for _, k := range at[i:] {
		if k >= 0 {
			before = min(before, k)
		}
	}
	for _, j := range added {
		if after < j && j < before && is[j].Kind == p.Kind {
			return j
		}
	}
	return -1
}

// comparePhase compares two phases with the same name.
func comparePhase(was, is Phase, add func(Danger, string, ...any)) {
	repeats := was.Kind == is.Kind && (was.NotIdempotent || !is.NotIdempotent) // if repeats is false, the engine repeats no call in doubt
	for _, call := range was.Calls {
		if repeats && !slices.Contains(is.Calls, call) && !slices.Contains(is.Calls, "*") {
			add(Twice, "the phase %q no longer calls tx.Key for %q; without the derived key, the provider treats a repeated call as a new call", was.Name, call)
		}
	}
	switch {
	case was.Kind == "Foreign" && is.Kind == "Atomic":
		add(Refused, "the phase %q was a Foreign and is now an Atomic, but an Atomic can't repeat a call in doubt", was.Name)
	case was.NotIdempotent && !is.NotIdempotent:
		add(Refused, "the phase %q no longer has idem.NotIdempotent", was.Name)
	case !was.NotIdempotent && is.NotIdempotent && was.Kind == is.Kind:
		add(Refused, "the phase %q now has idem.NotIdempotent", was.Name)
	}
	const day = int64(24 * time.Hour / time.Second)
	if before, now := cmp.Or(was.Remembers, day), cmp.Or(is.Remembers, day); now < before {
		add(Refused, "the phase %q now expects the provider to remember keys for only %v (before: %v)", was.Name,
			time.Duration(now)*time.Second, time.Duration(before)*time.Second)
	}
	if was.Result != nil && is.Result != nil {
		if why := lost(was.Result, is.Result, "the result"); why != "" {
			add(Refused, "the phase %q returns another type (%s)", was.Name, why)
		}
	}
}
