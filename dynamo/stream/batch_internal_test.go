package stream

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/store"
)

// version is a finished record as a stream record shows it: parked jobs have a "!" behind
// their names.
func version(id string, ver int64, jobs ...string) *store.Record {
	r := &store.Record{PK: "v1##" + id, ID: id, Ver: ver, State: store.Done, Keep: store.KeepJobs, Jobs: make(map[string]store.Job)}
	for _, name := range jobs {
		if n := len(name) - 1; name[n] == '!' {
			r.Jobs[name[:n]] = store.Job{Failed: "bad"}
		} else {
			r.Jobs[name] = store.Job{}
		}
	}
	return r
}

// netTodo is a todo in short.
type netTodo struct {
	ID         string
	Gone       bool
	Jobs, Lost map[string]int // and the stream record that has them come again
	LetGo      int            // the stream record that asks for it; -1 for none
}

// A batch is netted: what its later records say counts, and a job comes again from the first
// record that has it.
func TestNetted(t *testing.T) {
	t.Parallel()
	kept := func(r *store.Record, keep store.Keep) *store.Record { r.Keep = keep; return r }
	type jobsAt = map[string]int
	for name, tt := range map[string]struct {
		changes []change
		want    []netTodo
	}{
		"staged, and staged again": {
			[]change{{new: version("a", 1, "0.0")}, {old: version("a", 1, "0.0"), new: version("a", 2, "0.0", "1.0")}, {old: version("a", 1), new: version("a", 2, "0.0", "1.0")}},
			[]netTodo{{ID: "a", Jobs: jobsAt{"0.0": 0, "1.0": 1}, LetGo: -1}},
		},
		"delivered in the same batch":               {[]change{{new: version("a", 1, "0.0", "0.1")}, {old: version("a", 1, "0.0", "0.1"), new: version("a", 1, "0.1")}}, []netTodo{{ID: "a", Jobs: jobsAt{"0.1": 0}, LetGo: -1}}},
		"parked in the same batch":                  {[]change{{new: version("a", 1, "0.0")}, {old: version("a", 1, "0.0"), new: version("a", 1, "0.0!")}}, nil},
		"redriven":                                  {[]change{{old: version("a", 1, "0.0!"), new: version("a", 1, "0.0")}}, []netTodo{{ID: "a", Jobs: jobsAt{"0.0": 0}, LetGo: -1}}},
		"delivered, and acknowledged":               {[]change{{new: version("a", 1, "0.0")}, {old: version("a", 1, "0.0"), new: version("a", 1)}}, nil},
		"parked, and redriven":                      {[]change{{new: version("a", 1, "0.0!")}, {old: version("a", 1, "0.0!"), new: version("a", 1, "0.0")}}, []netTodo{{ID: "a", Jobs: jobsAt{"0.0": 1}, LetGo: -1}}},
		"an acknowledgement":                        {[]change{{old: version("a", 1, "0.0"), new: version("a", 1)}}, nil},
		"finished without jobs":                     {[]change{{new: version("b", 1, "0.0")}, {old: version("a", 1), new: version("a", 2)}}, []netTodo{{ID: "b", Jobs: jobsAt{"0.0": 0}, LetGo: -1}, {ID: "a", LetGo: 1}}},
		"finished at once, without jobs":            {[]change{{new: version("a", 1)}}, []netTodo{{ID: "a", LetGo: 0}}},
		"finished without jobs, and gone":           {[]change{{new: version("a", 1)}, {old: version("a", 1)}}, nil},
		"finished without jobs, and let go":         {[]change{{new: version("a", 1)}, {old: version("a", 1), new: kept(version("a", 1), "")}}, nil},
		"finished without jobs, which another adds": {[]change{{new: version("a", 1)}, {old: version("a", 1), new: version("a", 2, "1.0")}}, []netTodo{{ID: "a", Jobs: jobsAt{"1.0": 1}, LetGo: -1}}},
		"gone, with a job that waits for people":    {[]change{{old: version("a", 1, "0.0", "0.1!")}}, []netTodo{{ID: "a", Gone: true, Jobs: jobsAt{"0.0": 0}, Lost: jobsAt{"0.1": 0}, LetGo: -1}}},
		"staged, and gone":                          {[]change{{new: version("a", 1, "0.0")}, {old: version("a", 1, "0.0")}}, []netTodo{{ID: "a", Gone: true, Jobs: jobsAt{"0.0": 0}, LetGo: -1}}},
		"gone, and put back":                        {[]change{{old: version("a", 1, "0.0")}, {new: version("a", 1, "0.0")}}, []netTodo{{ID: "a", Jobs: jobsAt{"0.0": 0}, LetGo: -1}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tt.changes {
				tt.changes[i].at = i
			}
			if diff := cmp.Diff(tt.want, inShort(netted(tt.changes))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("the key is used anew", func(t *testing.T) {
		t.Parallel()
		next := version("b", 1, "0.0")
		next.PK = "v1##a"
		got := inShort(netted([]change{{at: 7, old: version("a", 4, "0.0"), new: next}}))
		want := []netTodo{{ID: "a", Gone: true, Jobs: jobsAt{"0.0": 7}, LetGo: -1}, {ID: "b", Jobs: jobsAt{"0.0": 7}, LetGo: -1}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func inShort(todos []*todo) (all []netTodo) {
	places := func(refs []jobRef) map[string]int {
		if len(refs) == 0 {
			return nil
		}
		m := make(map[string]int)
		for _, j := range refs {
			m[j.name] = j.at
		}
		return m
	}
	for _, t := range todos {
		short := netTodo{ID: t.image.ID, Gone: t.gone, Jobs: places(t.jobs), Lost: places(t.lost), LetGo: -1}
		if t.letGo {
			short.LetGo = t.at
		}
		all = append(all, short)
	}
	return all
}

// Jobs with a time are put off. Those of a deleted record are delivered if their time had come
// by its removal, or their delivery had begun; the others are lost with it.
func TestPutOff(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(d time.Duration) store.Job { return store.Job{At: now.Add(d)} }
	begun := store.Job{At: now.Add(time.Hour), Begun: now}
	for name, tt := range map[string]struct {
		job               store.Job
		gone              bool
		removed           time.Time
		jobs, later, lost int
	}{
		"without a time":                         {store.Job{}, false, now, 1, 0, 0},
		"to come":                                {at(time.Hour), false, now, 0, 1, 0},
		"its time has come":                      {at(-time.Hour), false, now, 0, 1, 0},
		"on its way":                             {begun, false, now, 0, 1, 0},
		"gone, without a time":                   {store.Job{}, true, now, 1, 0, 0},
		"gone, to come":                          {at(time.Hour), true, now, 0, 0, 1},
		"gone, its time had come":                {at(-time.Hour), true, now, 1, 0, 0},
		"gone, on its way":                       {begun, true, now, 1, 0, 0},
		"gone before its time, which has come":   {at(-time.Minute), true, now.Add(-time.Hour), 0, 0, 1},
		"gone, nobody knows when":                {at(-time.Minute), true, time.Time{}, 1, 0, 0},
		"gone in time to come, by a wrong clock": {at(time.Minute), true, now.Add(time.Hour), 0, 0, 1},
	} {
		td := &todo{image: &store.Record{Jobs: map[string]store.Job{"0.0": tt.job}}, gone: tt.gone, time: tt.removed, jobs: []jobRef{{name: "0.0"}}}
		if td.putOff(now); len(td.jobs) != tt.jobs || len(td.later) != tt.later || len(td.lost) != tt.lost {
			t.Errorf("%s: %d to deliver, %d for later, %d lost", name, len(td.jobs), len(td.later), len(td.lost))
		}
	}
}

// The jobs of a todo wait for their times, each of which has one ticket; the earliest stream
// record with a job that is held back comes again.
func TestTimesOfATodo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	td := &todo{
		image: &store.Record{Jobs: map[string]store.Job{"0.0": {At: now.Add(2 * time.Hour)}, "0.1": {At: now.Add(time.Hour)}, "0.2": {At: now.Add(2 * time.Hour)}, "0.3": {At: now}}},
		jobs:  []jobRef{{name: "0.1"}, {name: "0.3"}}, later: []jobRef{{name: "0.0"}, {name: "0.1"}, {name: "0.2"}},
		held: []jobRef{{"0.0", 5}, {"0.1", 3}, {"0.2", 4}},
	}
	if got, want := td.times(), []time.Time{now.Add(time.Hour), now.Add(2 * time.Hour)}; !cmp.Equal(got, want) {
		t.Errorf("times %v, want %v", got, want)
	}
	if got := td.heldFrom(); got != 3 {
		t.Errorf("held from %d, want 3", got)
	}
	if td.ready(now); len(td.jobs) != 1 || td.jobs[0].name != "0.3" {
		t.Errorf("ready are %v, want the job whose time is now", td.jobs)
	}
}

// Jobs are delivered in the order of the stream, and those of a record as they were staged.
func TestDeliveriesInOrder(t *testing.T) {
	t.Parallel()
	refs := func(at int, names ...string) (all []jobRef) {
		for _, name := range names {
			all = append(all, jobRef{name, at})
		}
		return all
	}
	var got []string
	for _, d := range deliveries([]*todo{
		{image: version("a", 1), jobs: refs(2, "1.0", "1.1")}, {image: version("b", 1), jobs: refs(1, "0.0", "0.1")}, {image: version("c", 1), jobs: refs(2, "0.0")},
	}) {
		got = append(got, d.JobID)
	}
	if want := []string{"b.0.0", "b.0.1", "a.1.0", "a.1.1", "c.0.0"}; !cmp.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
