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

// WaitIndex is the index of operations and findings that wait for people. Its keys are the
// attributes "waits" and "wait_ms". An item without these attributes is not in the index.
const WaitIndex = "waiting"

// SetSince is a part of an update. It sets the start of a wait to :since, unless the
// item already has a start.
const SetSince = AttrSince + " = " + FirstSince

// FirstSince is the value that SetSince assigns.
const FirstSince = "if_not_exists(" + AttrSince + ", :since)"

// WaitProjected lists the attributes that the index holds besides its keys. A list of
// what waits shows only attributes of the index. No attribute of the index holds data
// of the request.
var WaitProjected = []string{
	AttrWaitIn, AttrAbout, AttrID, AttrFn, AttrHandler, AttrRoute, AttrLastErr, AttrTries, AttrCreated, AttrRun, AttrExpires,
}

// waitShards is the number of shards (partition keys) of the index for each reason. A
// single shard would take only 1000 writes a second. If the index can't take a write,
// the table can't take it either.
const waitShards = 8

// WaitKeys returns the partition keys under which the index lists the records that wait
// for the reason cause, one key for each shard.
func WaitKeys(cause state.Reason) []string {
	keys := make([]string, waitShards)
	for i := range keys {
		keys[i] = waitKey(cause, i)
	}
	return keys
}

// WaitKey returns the value of the attribute "waits" for the item with the partition key pk.
func WaitKey(cause state.Reason, pk string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pk)) // never fails
	return waitKey(cause, int(h.Sum32()%waitShards))
}

func waitKey(cause state.Reason, shard int) string { return string(cause) + "#" + strconv.Itoa(shard) }

// HoldJobs returns a condition, beginning with AND. The condition fails if one of these
// jobs has become parked, or is no longer parked, since the record was read. HoldJobs
// adds the condition's placeholders to the map names.
//
// A write needs the condition if the write ends a wait or makes a parked job the cause
// of the wait. A check of ver isn't enough, since writes about jobs don't raise ver.
// The condition prevents two errors:
//   - A drain parks a job between read and write. The write removes the record from the
//     index, although the record waits for people.
//   - An operator redrives a parked job between read and write. The write leaves the
//     record in the index for good, although no job is parked.
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

// HoldDecisions returns a condition, beginning with AND, that is true while a record
// has exactly these decisions. HoldDecisions adds the condition's values to the map
// args. A write of the whole list needs the condition: without it, two operators who
// decide at once could overwrite each other's decision.
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
	args[":decision"] = v.Str(all[n-1].ID) // the length isn't enough, because a new decision doesn't change the length of a full list
	return condition + " AND " + last + " = :decision"
}

// WaitIn returns the value of the attribute wait_in: the phase or job of the wait w,
// for lists of what waits.
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

// WaitIn reads the attribute wait_in of an index entry. The Wait that it returns has no
// Reason.
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
