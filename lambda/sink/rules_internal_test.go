package sink

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem/jobs"
)

// Of an error whose code nobody knows, the status tells the cause. A job is parked for its
// own fault only.
func TestBlameByStatus(t *testing.T) {
	t.Parallel()
	known := map[int]blame{413: ofJob}
	for _, status := range []int{401, 403, 404, 407, 408, 409, 425, 429} {
		known[status] = ofSink
	}
	for status := 100; status < 600; status++ {
		want, ok := known[status]
		if !ok {
			want = map[bool]blame{true: inDoubt, false: ofSink}[status >= 400 && status < 500]
		}
		if got := classes(status); got != want {
			t.Errorf("%d: %d, want %d", status, got, want)
		}
	}
	for sender, want := range map[bool]blame{true: inDoubt, false: ofSink} { // of an entry, by the service's word
		if got := entryFault("NobodyDocumentsThis", "m", sender).blame; got != want {
			t.Errorf("an entry that is the sender's fault (%t): %d, want %d", sender, got, want)
		}
	}
}

func TestARNOfAStateMachine(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]string{ // the unqualified one; "": it is none
		"arn:aws:states:eu-central-1:1:stateMachine:ship":        "arn:aws:states:eu-central-1:1:stateMachine:ship",
		"arn:aws-cn:states:cn-north-1:1:stateMachine:ship:7":     "arn:aws-cn:states:cn-north-1:1:stateMachine:ship",
		"arn:aws:states:eu-central-1:1:stateMachine:ship:live":   "arn:aws:states:eu-central-1:1:stateMachine:ship",
		"arn:aws:states:eu-central-1:1:stateMachine:ship:live:x": "",
		"arn:aws:states:eu-central-1:1:stateMachine:ship:":       "",
		"arn:aws:states:eu-central-1:1:stateMachine:":            "",
		"arn:aws:states:eu-central-1:1:stateMachine::live":       "",
		"arn:aws:states:eu-central-1:1:stateMachine":             "",
		"arn:aws:states:eu-central-1:1:stateMachine:ship/map":    "",
		"arn:aws:states:eu-central-1:1:execution:ship:x":         "",
		"arn:aws:lambda:eu-central-1:1:stateMachine:ship":        "",
		"urn:aws:states:eu-central-1:1:stateMachine:ship":        "",
		"ship": "",
	} {
		got, ok := parseMachine(arn)
		if ok != (want != "") || ok && (got.unqualified() != want || got.whole != arn) {
			t.Errorf("%s: %+v, %t", arn, got, ok)
		}
		if ok && got.execution("e") != "arn:"+got.parts[1]+":states:"+got.parts[3]+":1:execution:ship:e" {
			t.Errorf("%s: %s", arn, got.execution("e"))
		}
	}
}

// One job at a time is the suspect of a sink that accepts nothing, for three minutes after its last
// refusal. For a minute after an accepted job each refusal is its job's.
func TestSuspects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e evidence
		for i, step := range []struct {
			later   time.Duration
			job     string // "": one is accepted
			suspect bool
		}{
			{0, "a", true},
			{0, "b", false},
			{suspicion - 1, "b", false},
			{0, "a", true},
			{suspicion - 1, "b", false},
			{1, "b", true},
			{0, "a", false},
			{0, "", false},
			{trust - 1, "c", true},
			{0, "d", true},
			{1, "c", false},
			{0, "d", true},
		} {
			time.Sleep(step.later) //nolint:forbidigo // virtual
			if step.job == "" {
				e.accepts()
			} else if got := e.suspects(step.job); got != step.suspect {
				t.Errorf("step %d: %s is a suspect: %t", i, step.job, got)
			}
		}
	})
}

// A call takes the deliveries that fit, in their order. One that is too large goes alone. In an
// ordered sink a call has one of each group.
func TestDeliveriesOfACall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sizes   []int
		groups  string
		ordered bool
		now     []int
		later   []int
	}{
		"all":                     {sizes: []int{4, 3, 3}, groups: "aab", now: []int{0, 1, 2}},
		"one too many":            {sizes: []int{1, 1, 1, 1}, groups: "abcd", now: []int{0, 1, 2}, later: []int{3}},
		"a byte too many":         {sizes: []int{4, 3, 4, 1}, groups: "abcd", now: []int{0, 1}, later: []int{2, 3}},
		"too large":               {sizes: []int{11, 1}, groups: "ab", now: []int{0}, later: []int{1}},
		"too large, later":        {sizes: []int{1, 11}, groups: "ab", now: []int{0}, later: []int{1}},
		"one of each group":       {sizes: []int{1, 1, 1, 1}, groups: "aabb", ordered: true, now: []int{0, 2}, later: []int{1, 3}},
		"of each group, and full": {sizes: []int{1, 1, 1, 1, 1, 1}, groups: "aabcdd", ordered: true, now: []int{0, 2, 3}, later: []int{1, 4, 5}},
	} {
		b := &batcher{service: service{limits: limits{entries: 3, bytes: 10}}, ordered: tt.ordered}
		all, left := make([]jobs.Delivery, len(tt.sizes)), make([]int, len(tt.sizes))
		for i := range all {
			all[i], left[i] = jobs.Delivery{JobID: fmt.Sprint(i), Group: tt.groups[i : i+1]}, i
		}
		b.size = func(d jobs.Delivery) int { var i int; _, _ = fmt.Sscan(d.JobID, &i); return tt.sizes[i] }
		now, later := b.next(all, left)
		if diff := cmp.Diff([2][]int{tt.now, tt.later}, [2][]int{now, later}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An answer about an entry that nobody has sent tells nothing.
func TestResultsOfEntries(t *testing.T) {
	t.Parallel()
	r := missing(2)
	for _, id := range []*string{nil, aws.String(""), aws.String("x"), aws.String("-1"), aws.String("2")} {
		r.set(id, nil)
	}
	if r[0] == nil || r[1] == nil || !r.down() {
		t.Errorf("%v", r)
	}
	r.set(aws.String("1"), nil)
	if r[0] == nil || r[1] != nil || r.down() {
		t.Errorf("%v", r)
	}
	r.set(aws.String("1"), &fault{inDoubt, errUntold})
	if r.down() {
		t.Error("a job in doubt is no sink that is down")
	}
}
