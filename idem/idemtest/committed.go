package idemtest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/store"
)

// A Log lists what a store has committed. [FaultyStore] and [World] are Logs.
type Log interface {
	// Commits returns all claims and commits that were applied, oldest first. A claim
	// is returned as a Commit whose Prev has only the PK.
	Commits() []store.Commit
}

var (
	_ Log = (*FaultyStore)(nil)
	_ Log = (*World)(nil)
)

// Watch returns a store that passes all calls on to s. The returned store is also a
// [Log] of the commits, which [Staged], [Committed] and [Finished] can read.
func Watch(s store.Store) *FaultyStore { return Faulty(s, nil) }

// Commits implements [Log]. Commits doesn't return a write that the wrapped store applied
// but answered with an error. [FaultyStore.Reset] keeps the list of commits.
func (f *FaultyStore) Commits() []store.Commit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.commits)
}

// FaultyStore.applied adds the write c to f.commits if the wrapped store has made it.
func (f *FaultyStore) applied(c store.Commit, held *store.Record, err error) {
	if held != nil || err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commits = append(f.commits, c)
}

// Phase is a committed phase.
type Phase[T any] struct {
	Name   string
	Result T
	// Writes are the handler's writes in the phase's commit, as texts (the String
	// method of each write).
	Writes []string
	// Jobs are the jobs that the phase's commit staged, in no particular order.
	Jobs []idem.Job
}

// Committed returns the committed phase of the given name: its result, and the writes
// and jobs of its commit. Committed fails the test if a phase of this name was not
// committed, or was committed by several operations, or if its result isn't a T. A
// phase that was committed together with the answer has no stored result: use
// [Finished] instead.
func Committed[T any](t testing.TB, log Log, name string) Phase[T] {
	t.Helper()
	var found []Phase[T]
	var recorded []string
	for _, c := range log.Commits() {
		for _, p := range c.Next.Phases {
			if p.Intent || slices.ContainsFunc(c.Prev.Phases, func(q store.Phase) bool { return q.Name == p.Name && !q.Intent }) {
				continue
			}
			recorded = append(recorded, p.Name)
			if p.Name != name {
				continue
			}
			if p.Result == nil {
				t.Fatalf("phase %q was committed with the answer, which dropped its result: look at Finished", name)
			}
			found = append(found, Phase[T]{Name: name, Result: decoded[T](t, "the result of phase "+name, p.Result), Writes: texts(c.Writes), Jobs: staged(c)})
		}
	}
	if len(found) != 1 {
		t.Fatalf("phase %q was committed %d times, want once; committed: %q", name, len(found), recorded)
	}
	return found[0]
}

// Final describes how an operation ended.
type Final struct {
	Response idem.Response
	// Writes and Jobs belong to the commit that stored the answer.
	Writes []string
	Jobs   []idem.Job
	// Phases are the names of the recovery points before the answer, in order.
	Phases []string
}

// Finished returns the stored answer, with the writes and jobs of the answer's commit.
// Finished fails the test unless exactly one operation has finished.
func Finished(t testing.TB, log Log) Final {
	t.Helper()
	var found []Final
	for _, c := range log.Commits() {
		if c.Next.State != store.Done || c.Prev.State == store.Done {
			continue
		}
		f := Final{Writes: texts(c.Writes), Jobs: staged(c)}
		if c.Next.Response != nil {
			f.Response = c.Next.Response.Clone()
		}
		for _, p := range c.Next.Phases {
			f.Phases = append(f.Phases, p.Name)
		}
		found = append(found, f)
	}
	if len(found) != 1 {
		t.Fatalf("%d operations have finished, want 1", len(found))
	}
	return found[0]
}

// Staged returns the arguments of the only committed job of a kind. Staged fails the test
// if there is no job of the kind, if there are several, or if the job's arguments aren't a
// T. To allow for no job or several jobs, use [AllStaged].
//
//	receipt := idemtest.Staged[Receipt](t, store, "send_receipt")
func Staged[T any](t testing.TB, log Log, kind string) T {
	t.Helper()
	all := AllStaged[T](t, log, kind)
	if len(all) != 1 {
		t.Fatalf("%d jobs of kind %q are staged, want 1; staged: %q", len(all), kind, kinds(log))
	}
	return all[0]
}

// AllStaged returns the arguments of all committed jobs of a kind, ordered by commit,
// and within a commit by the jobs' ids. AllStaged fails the test if a job's arguments
// can't be decoded into a T, or have a member that T lacks.
func AllStaged[T any](t testing.TB, log Log, kind string) []T {
	t.Helper()
	var all []T
	for _, c := range log.Commits() {
		for _, j := range staged(c) {
			if j.Kind == kind {
				all = append(all, decoded[T](t, "the job "+kind, j.Args))
			}
		}
	}
	return all
}

func kinds(log Log) (all []string) {
	for _, c := range log.Commits() {
		for _, j := range staged(c) {
			all = append(all, j.Kind)
		}
	}
	return all
}

// staged(c) returns the jobs that a commit added, in the order of their ids.
func staged(c store.Commit) (added []idem.Job) {
	for _, id := range slices.Sorted(maps.Keys(c.Next.Jobs)) {
		if _, known := c.Prev.Jobs[id]; !known {
			added = append(added, c.Next.Jobs[id])
		}
	}
	return added
}

func texts(writes []store.Write) (all []string) {
	for _, w := range writes {
		all = append(all, w.String())
	}
	return all
}

func decoded[T any](t testing.TB, of string, raw []byte) (v T) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s is no %T: %v in %s", of, v, err, raw)
	}
	return v
}
