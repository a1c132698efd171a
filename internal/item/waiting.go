package item

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/state"
)

// WaitIndex is the index of what waits for people: by waits, sorted by wait_ms. An item
// without these attributes is not in it.
const WaitIndex = "waiting"

// SetSince is the part of an update that sets since when a record waits: from :since
// on, unless it has waited before.
const SetSince = AttrSince + " = " + FirstSince

// FirstSince is the value of that part.
const FirstSince = "if_not_exists(" + AttrSince + ", :since)"

// WaitProjected are the further attributes of an entry of the index: all that a list
// shows. None holds data of the request.
var WaitProjected = []string{
	AttrWaitIn, AttrAbout, AttrID, AttrFn, AttrHandler, AttrRoute, AttrLastErr, AttrTries, AttrCreated, AttrRun, AttrExpires,
}

// waitShards is how many partitions the entries of a cause are spread over: each takes
// 1000 writes a second, and the table has to wait for its index.
const waitShards = 8

// WaitKeys returns the partition keys of a cause.
func WaitKeys(cause state.Reason) []string {
	keys := make([]string, waitShards)
	for i := range keys {
		keys[i] = waitKey(cause, i)
	}
	return keys
}

// WaitKey returns the value of waits for the item pk.
func WaitKey(cause state.Reason, pk string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pk)) // never fails
	return waitKey(cause, int(h.Sum32()%waitShards))
}

func waitKey(cause state.Reason, shard int) string { return string(cause) + "#" + strconv.Itoa(shard) }

// HoldJobs returns a condition, beginning with AND, that is true while of these jobs the
// same are parked; names gets its placeholders. A write that ends a wait, or turns it
// into the wait of a parked job, needs it, since writes about jobs don't raise ver:
//   - a job that is not parked: a drain may park it between the read and the write,
//     which would take the record out of the index;
//   - a parked job: an operator may redrive it meanwhile, and the write would leave the
//     record in the index for good.
func HoldJobs(jobs map[string]store.Job, names map[string]string) string {
	var b strings.Builder
	for i, name := range slices.Sorted(maps.Keys(jobs)) {
		n, test := "#w"+strconv.Itoa(i), "attribute_not_exists"
		if jobs[name].Failed != "" {
			test = "attribute_exists"
		}
		names[n], names["#f"] = name, JobFailed
		fmt.Fprintf(&b, " AND %s(%s.%s.#f)", test, AttrJobs, n)
	}
	return b.String()
}

// HoldDecisions returns a condition, beginning with AND, that is true while these are the
// decisions of a record; args gets its values. A write of the whole list needs it: of two
// operators at once, the second one's decision joins the first one's in the list.
func HoldDecisions(all []store.Decision, args Map) string {
	n := len(all)
	if n == 0 {
		return " AND attribute_not_exists(" + AttrSettled + ")"
	}
	var v Values
	args[":decided"] = v.Num(int64(n))
	last := fmt.Sprintf("%s[%d].%s", AttrSettled, n-1, settledID)
	condition := " AND size(" + AttrSettled + ") = :decided"
	if all[n-1].ID == "" {
		return condition + " AND attribute_not_exists(" + last + ")"
	}
	args[":decision"] = v.Str(all[n-1].ID) // a full list stays as long
	return condition + " AND " + last + " = :decision"
}

// WaitIn returns where a record stands, for the list.
func (v *Values) WaitIn(w state.Wait) Value {
	m := make(Map, 4)
	for name, s := range map[string]string{waitPhase: w.Phase, waitJob: w.Job, waitKind: w.Kind, waitReason: w.Failed} {
		if s != "" {
			m[name] = v.Str(s)
		}
	}
	if w.Tries != 0 {
		m[waitTries] = v.Num(int64(w.Tries))
	}
	return &types.AttributeValueMemberM{Value: m}
}

// WaitIn returns where an entry of the index stands. Its cause is not known.
func (d *Decoder) WaitIn() state.Wait {
	m := as[*types.AttributeValueMemberM](d, d.It, AttrWaitIn, false)
	if m == nil {
		return state.Wait{}
	}
	at := Decoder{It: m.Value}
	return state.Wait{
		Phase: at.Text(waitPhase, false), Job: at.Text(waitJob, false), Kind: at.Text(waitKind, false), Failed: at.Text(waitReason, false),
		Tries: int(at.Number(waitTries, false)),
	}
}
