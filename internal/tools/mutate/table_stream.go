package main

// jobMutants break the writes about staged jobs.
func jobMutants() []mutant {
	const jobs, park, redrive, changed = "dynamo/jobs.go", "dynamo/park.go", "dynamo/redrive.go", "^TestAckAfterTheRecordHasChanged$"
	return []mutant{
		{
			rule: "AckID", what: "an acknowledgement removes another operation's jobs",
			file: jobs, old: `ackCondition = "id = :id AND`, new: `ackCondition = "(id = :id OR id <> :id) AND`, run: changed,
		},
		{
			rule: "AckSize", what: "a record is let go though a job was added since",
			file: jobs, old: " AND size(jobs) = :n\"", new: " AND size(jobs) >= :n\"", run: changed,
		},
		{
			rule: "AckSize", what: "a record is let go though the jobs are others, of the same number",
			file: jobs, old: `condition += each(paths, " AND attribute_exists(%s)")`, new: `_ = each(paths, "")`, run: changed,
		},
		{
			rule: "AckDone", what: "a record is let go that isn't finished",
			file: jobs, old: "lastCondition = ackCondition + \" AND st = :done AND", new: "lastCondition = ackCondition + \" AND (st = :done OR st <> :done) AND", run: changed,
		},
		{
			rule: "AckUntil", what: "a record is let go that has no end",
			file: jobs, old: "lastCondition = ackCondition + \" AND st = :done AND attribute_exists(until_s) AND", new: "lastCondition = ackCondition + \" AND st = :done AND", run: changed, refused: true,
		},
		{
			rule: "AckMap", what: "an acknowledgement of a record without the map is sent",
			file: jobs, old: `"id = :id AND attribute_exists(jobs)"`, new: `"id = :id"`, run: "^TestAckOfARecordWithoutItsMap$", refused: true,
		},
		{
			rule: "Clean", what: "an early job's acknowledgement doesn't settle what was finished since",
			file: jobs, old: "if err != nil || refused || !unsettled(now) {", new: "if err != nil || refused || now != nil {", run: changed,
		},
		{
			rule: "Clean", what: "a refused last acknowledgement doesn't settle what has no jobs any more",
			file: jobs, old: "\t\tcase unsettled(now):\n\t\t\treturn s.Settle(ctx, now)\n", new: "", run: "^TestLastAckOfWhatOthersDeliveredSettles$",
		},
		{
			rule: "SettleCond", what: "a record with jobs is settled",
			file: jobs, old: "AND size(jobs) = :zero\"", new: "AND size(jobs) >= :zero\"", run: "^TestSettle$",
		},
		{
			rule: "SettleCond", what: "another operation's record is settled",
			file: jobs, old: `settleCondition = "id = :id AND`, new: `settleCondition = "(id = :id OR id <> :id) AND`, run: "^TestSettle$",
		},
		{
			rule: "SettleCond", what: "a record is settled that isn't finished",
			file: jobs, old: "settleCondition = \"id = :id AND st = :done AND", new: "settleCondition = \"id = :id AND (st = :done OR st <> :done) AND", run: "^TestSettle$",
		},
		{
			rule: "SettleCond", what: "a record is settled that is kept for another reason",
			file: jobs, old: "AND keep = :jobs AND", new: "AND (keep = :jobs OR keep <> :jobs) AND", run: "^TestSettle$",
		},
		{
			rule: "AckTombstone", what: "a tombstone ends with its answer",
			file: jobs, old: "until_s + if_not_exists(tomb_s, :zero)", new: "until_s + :zero", run: "^TestTombstoneOutlivesTheLastAck$",
		},
		{
			rule: "ParkOnce", what: "a delivered job is counted",
			file: park, old: `" AND attribute_exists(%s)"`, new: `""`,
			run: "^TestFailOfWhatIsGone$", refused: true,
		},
		{
			rule: "ParkOnce", what: "a parked job's reason is replaced",
			file: park, old: `" AND attribute_not_exists(%s.#f)"`,
			new: `" AND (attribute_exists(%s.#f) OR attribute_not_exists(%s.#f))"`, run: "^TestParkedJobKeepsItsFirstReason$",
		},
		{
			rule: "ParkTries", what: "a job is parked in a new round by the count of the old one",
			file: park, old: `" AND %s.#t >= :max"`, new: `" AND (attribute_not_exists(%s.#t) OR %s.#t >= :max OR %s.#t < :max)"`,
			run: "^TestParkingMeetsARedrive$",
		},
		{
			rule: "RedriveID", what: "a redrive reaches another operation, which has the key by now",
			file: redrive, old: "if now.ID != id {", new: "if now.ID == \"\" {", run: "^TestRedriveReachesNoOtherOperation$",
		},
		{
			rule: "RedriveParked", what: "a redrive takes the counts of a new round",
			file: redrive, old: `" AND attribute_exists(%s.#f)"`, new: `" AND (attribute_exists(%s.#f) OR attribute_not_exists(%s.#f))"`,
			run: "^TestRedriveMeetsANewRound$",
		},
	}
}

// streamMutants break what the functions behind the stream do.
func streamMutants() []mutant {
	const drain, fold, stream, completer, findings = "dynamo/drain.go", "dynamo/fold.go", "dynamo/stream.go", "dynamo/completer.go", "dynamo/findings.go"
	const scan, sweep, cursor, again = "dynamo/scan.go", "dynamo/sweep.go", "dynamo/cursor.go", "dynamo/again.go"
	return []mutant{
		{
			rule: "AckLast", what: "jobs are acknowledged before they are delivered",
			file: drain, old: "\toutcomes := d.deliver(ctx, parcels(errands))\n",
			new: "\tfor _, e := range errands {\n\t\tfor _, j := range e.jobs {\n\t\t\t_ = d.store.Ack(ctx, e.image, j.name)\n\t\t}\n\t}\n\toutcomes := d.deliver(ctx, parcels(errands))\n",
			run: "^TestA21FailureIsReportedAndTheRestComesAgain$",
		},
		{
			rule: "AckLast", what: "what could not be delivered is acknowledged",
			file: drain, old: "\t\tcase err == nil:\n\t\t\tnames = append(names, j.name)", new: "\t\tcase err == nil || !e.gone:\n\t\t\tnames = append(names, j.name)",
			run: "^TestA21FailureIsReportedAndTheRestComesAgain$",
		},
		{
			rule: "AckFailedComesAgain", what: "a batch whose acknowledgement failed isn't reported",
			file: drain, old: "\t\tfor _, j := range e.jobs {\n\t\t\tagain(j.at)\n\t\t}\n\t\treturn first, len(names)", new: "\t\treturn first, len(names)",
			run: "^TestUnacknowledgedJobsComeAgain$",
		},
		{
			rule: "Clean", what: "the drain doesn't settle",
			file: drain, old: "\tif e.settle {\n", new: "\tif e.settle && e.gone {\n", run: "^TestJobsDeliveredBeforeTheFinishTakeASettle$",
		},
		{
			rule: "SettleFailedComesAgain", what: "a settle that failed isn't reported",
			file: drain, old: "\t\t\tagain(e.at)\n", new: "", run: "^TestFailedSettleComesAgain$",
		},
		{
			rule: "OutageParksNothing", what: "an outage of the sink counts against its jobs",
			file: drain, old: "case e.gone, errors.Is(err, idem.ErrSinkDown), errors.Is(err, idem.ErrNotTried):", new: "case e.gone:", run: "^TestOutageParksNothing$",
		},
		{
			rule: "GoneComesAgain", what: "a failed job of a removed record is forgotten",
			file: drain, old: "case e.gone, errors.Is(err, idem.ErrSinkDown),", new: "case errors.Is(err, idem.ErrSinkDown),", run: "^TestFailedJobOfARemovedRecordComesAgain$",
		},
		{
			rule: "NewJobsOnly", what: "the drain's own writes ask for deliveries",
			file: fold, old: "if pending(c.new, name) && !pending(before, name) {", new: "if pending(c.new, name) {", run: "^(TestBadInput32PoisonJobIsParked|TestDrainsOwnWritesAskForNothing)$",
		},
		{
			rule: "ParkedTold", what: "a parked job goes with its record, and nobody is told",
			file: fold, old: "e.lost = append(e.lost, staged{name, c.at})", new: "_ = c.at", run: "^TestRemovedRecordsJobsAreDelivered$",
		},
		{
			rule: "ParkedStays", what: "a parked job is handed out again",
			file: fold, old: "return there && job.Failed == \"\"", new: "return there && len(job.Failed) >= 0", run: "^TestParkedJobIsLeftAlone$",
		},
		{
			rule: "RemovedJobs", what: "the jobs of a removed record are forgotten",
			file: fold, old: "\t\tif c.replaced() {\n\t\t\tof(c.old).remove(c)\n\t\t}\n", new: "", run: "^TestRemovedRecordsJobsAreDelivered$",
		},
		{
			rule: "ReplacedJobs", what: "the jobs of a record that was claimed over are forgotten",
			file: stream, old: "(c.new == nil || c.new.ID != c.old.ID) }", new: "c.new == nil }", run: "^TestRemovedRecordsJobsAreDelivered$",
		},
		{
			rule: "UnreadableSkipped", what: "a record that can't be read holds its shard up",
			file: drain, old: "\tif !errors.Is(err, idem.ErrCorrupt) {\n\t\treturn true\n\t}\n", new: "\tif !errors.Is(err, idem.ErrCorrupt) || e != nil {\n\t\treturn true\n\t}\n", run: "^TestBrokenRecordDoesNotBlock$",
		},
		{
			rule: "CompleteOpen", what: "the completer queues what is finished, stuck or has no request",
			file: completer, old: "return r.State == idem.Open && r.Keep == idem.KeepOpen && r.Input != nil", new: "return r.State != idem.None", run: "^TestTickets$",
		},
		{
			rule: "CompleteNewest", what: "a claim that finished in the same batch is queued",
			file: completer, old: "newest[ch.new.PK] != ch || ", new: "", run: "^TestBatchIsNetted$",
		},
		{
			rule: "CompleteDue", what: "a ticket is due before the lease is over",
			file: completer, old: "\tif r.Lease.After(seen) {\n\t\tseen = r.Lease\n\t}\n", new: "", run: "^TestTickets$",
		},
		{
			rule: "TicketComesAgain", what: "a ticket that wasn't queued is forgotten",
			file: completer, old: "first = min(first, at[i])\n\t\t\tcontinue", new: "continue", run: "^TestQueueFails$",
		},
		{
			rule: "Reaper", what: "an unfinished operation goes away in silence",
			file: completer, old: "if ch.replaced() && unfinished(ch.old) {", new: "if ch.replaced() && unfinished(ch.old) && ch.at < 0 {", run: "^TestBadInput34UnfinishedRecordIsGone$",
		},
		{
			rule: "ReaperFreed", what: "a key that was given back raises an alarm",
			file: completer, old: "r.State == idem.Open && !freed(r)", new: "r.State == idem.Open", run: "^TestBadInput34UnfinishedRecordIsGone$",
		},
		{
			rule: "SweepLate", what: "the sweep works on what the stream's readers have hardly seen",
			file: findings, old: "s.judgeJobs(f, r, now.Sub(r.Run) > s.opt.Late)", new: "s.judgeJobs(f, r, now.After(r.Run))", run: "^TestSweepWaitsForTheStream$",
		},
		{
			rule: "SweepGoesOn", what: "each run begins at the begin",
			file: scan, old: "\tif after != \"\" {\n", new: "\tif after != \"\" && segment < 0 {\n", run: "^TestEveryRecordIsVisited$",
		},
		{
			rule: "SweepGoesOn", what: "a run doesn't store its place",
			file: sweep, old: "\tover.save(ctx)\n", new: "", run: "^TestEveryRecordIsVisited$",
		},
		{
			rule: "SweepGoesOn", what: "a run that is killed has stored nothing",
			file: cursor, old: "const savePages = 50", new: "const savePages = 5000", run: "^TestKilledSweepGoesOnFromItsLastStoredPlace$",
		},
		{
			rule: "SweepCond", what: "the slower of two sweeps puts the other's place back",
			file: cursor, old: "condition := \"ver = :prev\"", new: "condition := \"(ver = :prev OR ver <> :prev)\"", run: "^TestTwoSweepsLoseNoProgress$",
		},
		{
			rule: "SweepJoin", what: "the slower of two sweeps forgets how far it came",
			file: cursor, old: "c.at[i] = further(p, c.at[i])", new: "c.at[i] = p", run: "^TestTwoSweepsLoseNoProgress$",
		},
		{
			rule: "SweepOverdue", what: "a first pass that never ends is never overdue",
			file: cursor, old: "\t\tsince = c.began\n", new: "", run: "^TestSweepTellsOfAnOverduePass$",
		},
		{
			rule: "SweepAgain", what: "what failed waits until the pass comes by again",
			file: sweep, old: "return later(failed)", new: "return later(failed[:0])", run: "^TestFailedActIsTriedByTheNextRun$",
		},
		{
			rule: "SweepAgain", what: "of two sweeps the slower one forgets what failed with the other",
			file: cursor, old: "again := p.joinAgain(held.again)", new: "again := p.again", run: "^TestTwoSweepsKeepWhatFailed$",
		},
		{
			rule: "SweepAgain", what: "of two sweeps the slower one keeps to itself what failed with it",
			file: cursor, old: "if p.again = again; p.lost && slices.Equal(again, held.again) {", new: "if p.again = again; p.lost && !slices.Equal(again, nil) {", run: "^TestTwoSweepsKeepWhatFailed$",
		},
		{
			rule: "SweepAgain", what: "where too much fails the pass leaves the table behind unworked",
			file: again, old: "if over > 0 && f.runs >= giveWayAfter {", new: "if over > 0 {", run: "^TestRoomForWhatFails$",
		},
		{
			rule: "SweepPoison", what: "records that fail for ever hold up the pass",
			file: again, old: "if over > 0 && f.runs >= giveWayAfter {", new: "if over > 0 && f.runs < 0 {", run: "^TestPassWaitsForATimeWhereTooMuchFails$",
		},
		{
			rule: "Clean", what: "the sweep doesn't settle",
			file: findings, old: "settle: late && unsettled(r)}", new: "settle: late && unsettled(r) && r.ID == \"\"}", run: "^TestSweepActsInTheStreamsStead$",
		},
		{
			rule: "SweepGiveUp", what: "the sweep gives up what a client may still come back for",
			file: findings, old: "if now.Sub(r.Run) > s.opt.Retention {", new: "if now.After(r.Run) {", run: "^TestSweepGivesUpAfterTheRetentionOnly$",
		},
	}
}
