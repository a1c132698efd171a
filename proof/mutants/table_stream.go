package main

// jobMutants break the writes about staged jobs.
func jobMutants() []mutant {
	const changed = "^TestAckAfterTheRecordHasChanged$"
	return []mutant{
		{
			rule: "AckID", what: "an acknowledgement removes another operation's jobs",
			in: "dynamo/stream.ackCondition", old: `"id = :id AND attribute_exists(jobs)"`,
			new: `"(id = :id OR id <> :id) AND attribute_exists(jobs)"`, run: changed,
		},
		{
			rule: "AckSize", what: "a record is let go though a job was added since",
			in: "dynamo/stream.lastCondition", old: `"… AND size(jobs) = :n"`, new: `"… AND size(jobs) >= :n"`, run: changed,
		},
		{
			rule: "AckSize", what: "a record is let go though the jobs are others, of the same number",
			in: "dynamo/stream.jobWriter.ack", old: `$condition += each($paths, " AND attribute_exists(%s)")`, new: `_ = each($paths, "")`, run: changed,
		},
		{
			rule: "AckDone", what: "a record is let go that isn't finished",
			in: "dynamo/stream.lastCondition", old: `lastCondition = ackCondition + " AND st = :done AND…"`,
			new: `lastCondition = ackCondition + " AND (st = :done OR st <> :done) AND…"`, run: changed,
		},
		{
			rule: "AckUntil", what: "a record is let go that has no end",
			in: "dynamo/stream.lastCondition", old: `lastCondition = ackCondition + " AND st = :done AND attribute_exists(until_s) AND…"`,
			new: `lastCondition = ackCondition + " AND st = :done AND…"`, run: changed, refused: true,
		},
		{
			rule: "AckMap", what: "an acknowledgement of a record without the map is sent",
			in: "dynamo/stream.ackCondition", old: `"id = :id AND attribute_exists(jobs)"`, new: `"id = :id"`, run: "^TestAckOfARecordWithoutItsMap$", refused: true,
		},
		{
			rule: "Clean", what: "an early job's acknowledgement doesn't settle what was finished since",
			in: "dynamo/stream.jobWriter.acknowledge", old: "if !state.KeptForNothing($now) {", new: "if $now != nil {", run: changed,
		},
		{
			rule: "Clean", what: "a refused last acknowledgement doesn't settle what has no jobs any more",
			in: "dynamo/stream.jobWriter.acknowledge", old: "case state.KeptForNothing($now): return $w.letGo($ctx, $now)", new: "", run: "^TestLastAckOfWhatOthersDeliveredLetsGo$",
		},
		{
			rule: "SettleCond", what: "a record with jobs is settled",
			in: "dynamo/stream.letGoCondition", old: `"…AND size(jobs) = :zero"`, new: `"…AND size(jobs) >= :zero"`, run: "^TestLetGo$",
		},
		{
			rule: "SettleCond", what: "another operation's record is settled",
			in: "dynamo/stream.letGoCondition", old: `"id = :id AND…"`, new: `"(id = :id OR id <> :id) AND…"`, run: "^TestLetGo$",
		},
		{
			rule: "SettleCond", what: "a record is settled that isn't finished",
			in: "dynamo/stream.letGoCondition", old: `"id = :id AND st = :done AND…"`,
			new: `"id = :id AND (st = :done OR st <> :done) AND…"`, run: "^TestLetGo$",
		},
		{
			rule: "SettleCond", what: "a record is settled that is kept for another reason",
			in: "dynamo/stream.letGoCondition", old: `"…AND keep = :jobs AND…"`, new: `"…AND (keep = :jobs OR keep <> :jobs) AND…"`, run: "^TestLetGo$",
		},
		{
			rule: "AckTombstone", what: "a tombstone ends with its answer",
			in: "dynamo/stream.letGoUpdate", old: `"…until_s + if_not_exists(tomb_s, :zero)…"`, new: `"…until_s + :zero…"`, run: "^TestTombstoneOutlivesTheLastAck$",
		},
		{
			rule: "ParkOnce", what: "a delivered job is counted",
			in: "dynamo/stream.jobWriter.count", old: `" AND attribute_exists(%s)"`, new: `""`, run: "^TestFailOfWhatIsGone$", refused: true,
		},
		{
			rule: "ParkOnce", what: "a parked job's reason is replaced",
			in: "dynamo/stream.waiting", old: `" AND attribute_not_exists(%s.#f)"`, new: `" AND (attribute_exists(%s.#f) OR attribute_not_exists(%s.#f))"`,
			run: "^TestParkedJobKeepsItsFirstReason$",
		},
		{
			rule: "ParkTries", what: "a job is parked in a new round by the count of the old one",
			in: "dynamo/stream.jobWriter.park", old: `" AND %s.#t >= :max"`, new: `" AND (attribute_not_exists(%s.#t) OR %s.#t >= :max OR %s.#t < :max)"`,
			run: "^TestParkingMeetsARedrive$",
		},
		{
			rule: "RedriveID", what: "a redrive reaches another operation, which has the key by now",
			in: "dynamo/stream.jobWriter.decide", old: "if $now.ID != $id {", new: `if $now.ID == "" {`, run: "^TestRedriveReachesNoOtherOperation$",
		},
		{
			rule: "RedriveParked", what: "a redrive takes the counts of a new round",
			in: "dynamo/stream.jobWriter.unpark", old: `" AND attribute_exists(%s.#f)"`, new: `" AND (attribute_exists(%s.#f) OR attribute_not_exists(%s.#f))"`,
			run: "^TestRedriveMeetsANewRound$",
		},
	}
}

// streamMutants break what the functions behind the stream do.
func streamMutants() []mutant {
	return []mutant{
		{
			rule: "AckLast", what: "jobs are acknowledged before they are delivered",
			in: "dynamo/stream.Drain.run", old: "$outcomes := $d.deliver($ctx, deliveries($todos))",
			new: "for _, e := range $todos { for _, j := range e.jobs { _ = $d.jobs.acknowledge($ctx, e.image, j.name) } }; $outcomes := $d.deliver($ctx, deliveries($todos))",
			run: "^TestA21FailureIsReportedAndTheRestComesAgain$",
		},
		{
			rule: "AckLast", what: "what could not be delivered is acknowledged",
			in: "dynamo/stream.Drain.conclude", where: "$t *todo", old: "case $err == nil: $names = append($names, $j.name)",
			new: "case $err == nil || !$t.gone: $names = append($names, $j.name)", run: "^TestA21FailureIsReportedAndTheRestComesAgain$",
		},
		{
			rule: "AckFailedComesAgain", what: "a batch whose acknowledgement failed isn't reported",
			in: "dynamo/stream.Drain.conclude", old: "for _, $j := range $t.jobs { $again($j.at) }; return $first, len($names)", new: "return $first, len($names)",
			run: "^TestUnacknowledgedJobsComeAgain$",
		},
		{
			rule: "Clean", what: "the drain doesn't settle",
			in: "dynamo/stream.Drain.conclude", old: "if $t.letGo {", new: "if $t.letGo && $t.gone {", run: "^TestJobsDeliveredBeforeTheFinishTakeTwoUpdates$",
		},
		{
			rule: "SettleFailedComesAgain", what: "a settle that failed isn't reported",
			in: "dynamo/stream.Drain.conclude", old: `"let go", $err) { $again($t.at)`, new: `"let go", $err) {`, run: "^TestFailedLettingGoComesAgain$",
		},
		{
			rule: "OutageParksNothing", what: "an outage of the sink counts against its jobs",
			in: "dynamo/stream.Drain.conclude", old: "case $t.gone, errors.Is($err, jobs.ErrSinkDown), errors.Is($err, jobs.ErrHeldBack):", new: "case $t.gone:",
			run: "^TestOutageParksNothing$",
		},
		{
			rule: "GoneComesAgain", what: "a failed job of a removed record is forgotten",
			in: "dynamo/stream.Drain.conclude", old: "case $t.gone, errors.Is($err, jobs.ErrSinkDown),", new: "case errors.Is($err, jobs.ErrSinkDown),",
			run: "^TestFailedJobOfARemovedRecordComesAgain$",
		},
		{
			rule: "NewJobsOnly", what: "the drain's own writes ask for deliveries",
			in: "dynamo/stream.todo.add", old: "if state.Pending($c.new, $name) && !state.Pending($before, $name) {", new: "if state.Pending($c.new, $name) {",
			run: "^(TestBadInput32PoisonJobIsParked|TestDrainsOwnWritesAskForNothing)$",
		},
		{
			rule: "ParkedTold", what: "a parked job goes with its record, and nobody is told",
			in: "dynamo/stream.todo.remove", old: "$t.lost = append($t.lost, jobRef{$name, $c.at})", new: "_ = $c.at", run: "^TestRemovedRecordsJobsAreDelivered$",
		},
		{
			rule: "ParkedStays", what: "a parked job is handed out again",
			in: "internal/state.Pending", old: `return $there && $job.Failed == ""`, new: "return $there && len($job.Failed) >= 0", pkg: "dynamo/stream", run: "^TestParkedJobIsLeftAlone$",
		},
		{
			rule: "RemovedJobs", what: "the jobs of a removed record are forgotten",
			in: "dynamo/stream.netted", old: "if $c.replaced() { $of($c.old).remove($c) }", new: "", run: "^TestRemovedRecordsJobsAreDelivered$",
		},
		{
			rule: "ReplacedJobs", what: "the jobs of a record that was claimed over are forgotten",
			in: "dynamo/stream.change.replaced", old: "($c.new == nil || $c.new.ID != $c.old.ID) }", new: "$c.new == nil }", run: "^TestRemovedRecordsJobsAreDelivered$",
		},
		{
			rule: "UnreadableSkipped", what: "a record that can't be read holds its shard up",
			in: "dynamo/stream.Drain.failed", where: "$t *todo", old: "if !errors.Is($err, store.ErrCorrupt) { return true }",
			new: "if !errors.Is($err, store.ErrCorrupt) || $t != nil { return true }", run: "^TestBrokenRecordDoesNotBlock$",
		},
		{
			rule: "CompleteOpen", what: "the completer queues what is finished, stuck or has no request",
			in: "internal/state.Completable", old: "return $r.State == store.Open && $r.Keep == store.KeepOpen && $r.Input != nil", new: "return $r.State != store.None", pkg: "dynamo/stream",
			run: "^TestTickets$",
		},
		{
			rule: "CompleteNewest", what: "a claim that finished in the same batch is queued",
			in: "dynamo/stream.Completer.run", old: "$newest[$ch.new.PK] != $ch ||", new: "", run: "^TestBatchIsNetted$",
		},
		{
			rule: "CompleteDue", what: "a ticket is due before the lease is over",
			in: "internal/state.Due", old: "if $r.Lease.After($seen) { $seen = $r.Lease }", new: "", pkg: "dynamo/stream", run: "^TestTickets$",
		},
		{
			rule: "TicketComesAgain", what: "a ticket that wasn't queued is forgotten",
			in: "dynamo/stream.Completer.put", old: "$first = min($first, $at[$i]); continue", new: "continue", run: "^TestQueueFails$",
		},
		{
			rule: "DelayedGoesOn", what: "a job that fails holds up a worker's stream",
			in: "dynamo/stream.Drain.work", old: "$d.opt.Delayed == nil", new: "true", run: "^TestWorkerGoesOnBesideWhatFails$",
		},
		{
			rule: "DelayedOrder", what: "a later job of an operation overtakes one that was delayed",
			in: "dynamo/stream.Drain.holdBack", old: "return slices.ContainsFunc($d.ahead($t, $j.name), $waits)", new: "return slices.ContainsFunc($d.ahead($t, $j.name), $waits) && false",
			run: "^TestJobsThatWereDelayedKeepTheirOrder$",
		},
		{
			rule: "DelayedStale", what: "a job waits for one that was delivered since",
			in: "dynamo/stream.Drain.holdBack", old: "return $now != nil && $now.ID == $t.image.ID && state.Pending($now, $name)", new: "return $now != nil && $now.ID == $t.image.ID",
			run: "^TestJobBehindThoseThatWereDelivered$",
		},
		{
			rule: "DelayedGone", what: "a worker forgets a failed job of a record that is gone",
			in: "dynamo/stream.Drain.delay", old: "$first = min($first, $t.first)", new: "", run: "^TestFailedJobOfARemovedRecordComesAgain$",
		},
		{
			rule: "LeaveToSweep", what: "a queue that is down holds up a worker's jobs",
			in: "dynamo/stream.Completer.put", old: "if $c.opt.LeaveToSweep {", new: "if false {", run: "^TestWorkerGoesOnWithoutItsQueue$",
		},
		{
			rule: "ShareHalves", what: "a sink that hangs takes all of its share from each batch",
			in: "lambda/worker.share.turn", old: "$s.set(max($had/2, min(leastShare, $s.full)))", new: "$s.set($had)", run: "^TestShareOfASinkThatHangs$",
		},
		{
			rule: "Reaper", what: "an unfinished operation goes away in silence",
			in: "dynamo/stream.Completer.run", old: "if $ch.replaced() && state.Unfinished($ch.old) {", new: "if $ch.replaced() && state.Unfinished($ch.old) && $ch.at < 0 {",
			run: "^TestBadInput34UnfinishedRecordIsGone$",
		},
		{
			rule: "ReaperFreed", what: "a key that was given back raises an alarm",
			in: "internal/state.Unfinished", old: "$r.State == store.Open && !Freed($r)", new: "$r.State == store.Open", pkg: "dynamo/stream", run: "^TestBadInput34UnfinishedRecordIsGone$",
		},
		{
			rule: "SweepLate", what: "the sweep works on what the stream's readers have hardly seen",
			in: "dynamo/stream.Sweep.examineJobs", old: "return $now.Sub($since) > $s.opt.Late", new: "return $now.After($since)",
			run: "^TestSweepWaitsForTheStream$",
		},
		{
			rule: "SweepLate", what: "the sweep doesn't say which operations are too young for it",
			in: "dynamo/stream.Sweep.examine", old: "$now.Sub($since) <= $s.opt.Late", new: "$now.Sub($since) < 0", run: "^TestListNamesEverythingLeftUndone$",
		},
		{
			rule: "SweepGoesOn", what: "each run begins at the begin",
			in: "dynamo/stream.scanner.input", where: "$segment int", old: `if $after != "" {`, new: `if $after != "" && $segment < 0 {`, run: "^TestEveryRecordIsVisited$",
		},
		{
			rule: "SweepGoesOn", what: "a run doesn't store its place",
			in: "dynamo/stream.Sweep.scan", old: "$over.busy = time.Time{}; $over.save($ctx)", new: "$over.busy = time.Time{}", run: "^TestEveryRecordIsVisited$",
		},
		{
			rule: "SweepGoesOn", what: "a run that is killed has stored nothing",
			in: "dynamo/stream.savePages", old: "savePages = 50", new: "savePages = 5000", run: "^TestKilledSweepGoesOnFromItsLastStoredPlace$",
		},
		{
			rule: "SweepCond", what: "the slower of two sweeps puts the other's place back",
			in: "dynamo/stream.putCursor", old: `$condition := "ver = :prev"`, new: `$condition := "(ver = :prev OR ver <> :prev)"`, run: "^TestTwoSweepsLoseNoProgress$",
		},
		{
			rule: "SweepJoin", what: "the slower of two sweeps forgets how far it came",
			in: "dynamo/stream.cursor.join", old: "$c.at[$i] = further($p, $c.at[$i])", new: "$c.at[$i] = $p", run: "^TestTwoSweepsLoseNoProgress$",
		},
		{
			rule: "SweepCounts", what: "what a pass counts flaps with each of its runs",
			in: "dynamo/stream.cursor.found", old: "return $sum.atLeast($c.last)", new: "return $sum", pkg: "lambda/worker", run: "^TestCountsAreThoseOfThePass$",
		},
		{
			rule: "SweepBusy", what: "two runs do the same work of a pass",
			in: "dynamo/stream.Sweep.GoOn", old: "$s.opt.Now().Before($over.busy)", new: "false", pkg: "lambda/worker", run: "^TestRunLeavesAPassToAnother$",
		},
		{
			rule: "SweepBusy", what: "a run begins a pass that its schedule has not asked for",
			in: "dynamo/stream.Sweep.GoOn", old: "$over.fresh ||", new: "", pkg: "lambda/worker", run: "^TestRunLeavesAPassToAnother$",
		},
		{
			rule: "OldImage", what: "a mapping that is made anew delivers a day of jobs again",
			in: "dynamo/stream.Drain.recheck", old: "time.Since($t.time) < oldImage", new: "true", run: "^TestRemadeMappingDeliversNothingTwice$",
		},
		{
			rule: "OldImage", what: "each stream record costs a read",
			in: "dynamo/stream.Drain.recheck", old: "time.Since($t.time) < oldImage", new: "false", run: "^TestRemadeMappingDeliversNothingTwice$",
		},
		{
			rule: "SweepOverdue", what: "a first pass that never ends is never overdue",
			in: "dynamo/stream.cursor.overdue", old: "$since = $c.began", new: "", run: "^TestSweepTellsOfAnOverduePass$",
		},
		{
			rule: "SweepAgain", what: "what failed waits until the pass comes by again",
			in: "dynamo/stream.Sweep.scan", old: "$over.later($failed)", new: "$over.later($failed[:0])", run: "^TestFailedActIsTriedByTheNextRun$",
		},
		{
			rule: "SweepAgain", what: "of two sweeps the slower one forgets what failed with the other",
			in: "dynamo/stream.pass.save", old: "$again := $p.joinAgain($held.again)", new: "$again := $p.again", run: "^TestTwoSweepsKeepWhatFailed$",
		},
		{
			rule: "SweepAgain", what: "of two sweeps the slower one keeps to itself what failed with it",
			in: "dynamo/stream.pass.save", old: "if $p.again = $again; $p.lost && slices.Equal($again, $held.again) {",
			new: "if $p.again = $again; $p.lost && !slices.Equal($again, nil) {", run: "^TestTwoSweepsKeepWhatFailed$",
		},
		{
			rule: "SweepAgain", what: "what has just failed makes way",
			in: "dynamo/stream.pass.later", old: "$over > 0 && $f.runs >= giveWayAfter", new: "$over > 0", run: "^TestRoomForWhatFails$",
		},
		{
			rule: "SweepPoison", what: "what fails for ever makes way for nothing",
			in: "dynamo/stream.pass.later", old: "$over > 0 && $f.runs >= giveWayAfter", new: "$over > 0 && $f.runs < 0", run: "^TestRoomForWhatFails$",
		},
		{
			rule: "Clean", what: "the sweep doesn't settle",
			in: "dynamo/stream.Sweep.examineJobs", old: "letGo: $late($r.Run) && state.KeptForNothing($r)}", new: `letGo: $late($r.Run) && state.KeptForNothing($r) && $r.ID == ""}`,
			run: "^TestSweepActsInTheStreamsStead$",
		},
		{
			rule: "SweepGiveUp", what: "the sweep gives up what a client may still come back for",
			in: "dynamo/stream.Sweep.examine", old: "$now.After(state.LeftUntil($r))", new: "$now.After($r.Run)", run: "^TestSweepGivesUpAfterTheRetentionOnly$",
		},
		{
			rule: "Later", what: "a job is delivered before its time",
			in: "dynamo/stream.todo.ready", old: "return state.Later($t.image.Jobs[$j.name], $now)", new: "return false", run: "^TestJobWaitsForItsTime$",
		},
		{
			rule: "Later", what: "a sweep takes a job for late that waits for its time",
			in: "dynamo/stream.Sweep.examineJobs", old: "case $late($r.Run) && $late($r.Jobs[$name].At):", new: "case $late($r.Run):", run: "^TestSweepDeliversAtItsTime$",
		},
		{
			rule: "Later", what: "a job whose time is beyond its record's life is staged",
			in: "idem.core.due", old: "case $j.At.Sub($now) > $retention:", new: "case false:", run: "^TestTimeOfAJob$",
		},
		{
			rule: "Later", what: "a call is made after its phase was refused",
			in: "idem.Tx.fail", old: "if $tx.refuse != nil {", new: "if false {", run: "^TestForeignIsRefusedBeforeItsCall$",
		},
		{
			rule: "Later", what: "a schedule that exists is taken for a failure",
			in: "lambda/completer.Queue.create", old: "if _, $exists := errors.AsType[*types.ConflictException]($err); $exists { return nil }", new: "",
			run: "^TestTicketBeyondTheQueuesDelayIsASchedule$",
		},
		{
			rule: "Cancel", what: "the image of a job's commit has a cancelled job delivered",
			in: "dynamo/stream.todo.putOff", old: "case $job.At.IsZero(), $t.gone && (!state.Later($job, $now) || !$job.Begun.IsZero()):", new: "case !state.Later($job, $now):",
			run: "^TestCancelledJobIsNotDelivered$",
		},
		{
			rule: "Cancel", what: "a drain that is late delivers the later jobs of a deleted record",
			in: "dynamo/stream.todo.remove", old: "$t.image, $t.time, $t.gone = $c.old, $c.time, true", new: "$t.image, $t.gone = $c.old, true",
			run: "^TestLateDrainKeepsTheCancellation$",
		},
		{
			rule: "Cancel", what: "a job that was due when its record was deleted is lost",
			in: "dynamo/stream.todo.putOff", old: "$t.time.Add(wholeSecond)", new: "$t.time", run: "^TestLateDrainKeepsTheCancellation$",
		},
		{
			rule: "Cancel", what: "a job that may be on its way is cancelled", pkg: "dynamo/stream",
			in: "internal/state.MayCancel", old: "return Pending($r, $name) && !$j.At.IsZero() && $j.Begun.IsZero()", new: "return Pending($r, $name) && !$j.At.IsZero()", run: "^TestCancel$",
		},
		{
			rule: "Cancel", what: "a drain doesn't say that it begins",
			in: "dynamo/stream.Drain.begin", old: "$d.jobs.begin($ctx, $t.image, $names)", new: "$d.jobs.begin($ctx, $t.image, nil)", run: "^TestCancelRacesTheDrain$",
		},
		{
			rule: "Cancel", what: "a drain that can't say that it begins delivers",
			in: "dynamo/stream.Drain.begin", old: "return $begins", new: "return false", run: "^TestCancelRacesTheDrain$",
		},
		{
			rule: "InParts", what: "a batch is read at once",
			in: "dynamo/stream.batch.part", old: "$size > mostAtOnce", new: "$size < 0", run: "^TestBatchIsReadInParts$",
		},
		{
			rule: "InParts", what: "a part begins for which there is no time",
			in: "dynamo/stream.reader.inParts", old: "time.Until($deadline) < timeForPart", new: "time.Until($deadline) < -timeForPart", run: "^TestPartBeginsWithTime$",
		},
		{
			rule: "InParts", what: "a batch goes on behind a record that has to come again",
			in: "dynamo/stream.reader.inParts", old: "$from < $b.n && $first == none", new: "$from < $b.n", run: "^TestBatchIsReadInParts$",
		},
	}
}
