package main

// indexMutants break the index of what waits for people.
func indexMutants() []mutant {
	const (
		walk   = "^TestWaitingFollowsEveryWrite$"
		races  = "^TestWaitingRaces$"
		stream = "dynamo/stream"
	)
	return []mutant{
		{
			rule: "WaitJobs", what: "a wait ends or stays whatever became of the jobs since the read", in: "dynamo/internal/item.HoldJobs",
			old: `" AND %s(%s.%s.#f)"`, new: `" AND (%[1]s(%[2]s.%[3]s.#f) OR NOT %[1]s(%[2]s.%[3]s.#f))"`, pkg: stream, run: races,
		},
		{
			rule: "WaitAsSeen", what: "a redrive ends a wait whatever a holder wrote since the read", in: "dynamo/stream.asSeen",
			old: `" AND #owner = :owner AND ver = :ver"`, new: `" AND (#owner = :owner OR #owner <> :owner) AND (ver = :ver OR ver <> :ver)"`, run: races,
		},
		{
			rule: "WaitAck", what: "an acknowledged job that was parked leaves its wait behind", in: "dynamo/stream.notWaiting",
			old: `" AND attribute_not_exists(waits)"`, new: `" AND (attribute_not_exists(waits) OR attribute_exists(waits))"`, run: races,
		},
		{
			rule: "WaitLast", what: "the last acknowledged job leaves its wait behind", in: "dynamo/stream.letGoUpdate",
			old: `"… REMOVE keep, waits, wait_ms, wait_in"`, new: `"… REMOVE keep"`, run: races,
		},
		{
			rule: "WaitFirst", what: "a parked job hides that its record is stuck", in: "dynamo/stream.jobWriter.park",
			old: `"waits = if_not_exists(waits, :waits)"`, new: `"waits = :waits"`, run: races,
		},
		{
			rule: "WaitSince", what: "a wait begins anew with each write about it", in: "dynamo/internal/item.FirstSince",
			old: `"if_not_exists(" + AttrSince + ", :since)"`, new: `":since"`, pkg: stream, run: walk,
		},
		{
			rule: "WaitEnds", what: "a settled record stays in the index", in: "dynamo.update.wait",
			old: "$u.remove = append($u.remove, item.AttrWait, item.AttrSince, item.AttrWaitIn)", new: "", pkg: stream, run: races,
		},
		{
			rule: "WaitReview", what: "a sweep strikes an item off the list that a drain has seen unreadable since", in: "dynamo/stream.jobWriter.review",
			old: `item.AttrExpires + " = :seen"`, new: `item.AttrExpires + " = :seen OR " + item.AttrExpires + " <> :seen"`, run: "^TestUnreadableAgainMeanwhile$",
		},
		{
			rule: "WaitSince", what: "a record waits anew with each transition", in: "internal/state.WaitFrom",
			old: "case $r.WaitSince.IsZero():", new: "default:", run: "^TestWaitSinceIsSetWhileARecordWaits$",
		},
	}
}
