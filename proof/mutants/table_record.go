package main

// recordMutants break the pure part: what becomes of a record, and what an
// attempt does about one.
func recordMutants() []mutant {
	const (
		judgements  = "^TestJudgeExhaustively$"
		transitions = "^TestTransitions$"
	)
	return []mutant{
		{
			rule: "MismatchLock", what: "another request is judged after the lock: it takes an abandoned record over",
			in: "internal/state.Judge", where: "$held *store.Record", old: "case !$same:", new: "case !$same && $held.State != store.Open:", run: judgements,
		},
		{
			rule: "MismatchLock", what: "another request is told of the lock first",
			in: "internal/state.Judge", where: "$held *store.Record, $me string, $same bool, $now time.Time", old: "case !$same:",
			new: "case !$same && !$held.Lease.After($now):", run: judgements,
		},
		{
			rule: "OwnFirst", what: "an attempt doesn't know its own claim, whose answer was lost",
			in: "internal/state.Judge", old: "case $held.Owner == $me && $held.Ver == 1 && $held.State != store.Stuck:", new: "case $held.Owner == $me && $held.Ver < 1:", run: judgements,
		},
		{
			rule: "TombstoneJudge", what: "an answer past its end replays",
			in: "internal/state.Judge", old: "case $held.State == store.Done && !$held.Expires.IsZero() && Over($held.Until, $now): return Expired", new: "", run: judgements,
		},
		{
			rule: "KeptReplays", what: "a record that is kept for its jobs says expired",
			in: "internal/state.Judge", old: "$held.State == store.Done && !$held.Expires.IsZero() && Over($held.Until, $now)", new: "$held.State == store.Done && Over($held.Until, $now)",
			run: judgements,
		},
		{
			rule: "StuckStays", what: "a client takes a stuck record over",
			in: "internal/state.Judge", old: "case $held.State == store.Stuck: return Stuck", new: "", run: judgements,
		},
		{
			rule: "LeaseHolds", what: "a client takes a running request over",
			in: "internal/state.Judge", old: "case $held.Lease.After($now): return InFlight", new: "", run: judgements,
		},
		{
			rule: "TakeBump", what: "a write keeps ver",
			in: "internal/state.Stamp", old: "$next.Ver = $prev.Ver + 1",
			new: "$next.Ver = $prev.Ver", pkg: "internal/state", run: transitions,
		},
		{
			rule: "TakeExp", what: "a take-over keeps exp_s: TTL deletes the record under its holder",
			in: "internal/state.renew", where: "$now, $lease time.Time", old: "if !$r.Expires.IsZero() { $r.Expires",
			new: "if $r.Expires.IsZero() && $now.IsZero() { $r.Expires", run: transitions,
		},
		{
			rule: "RecordsLife", what: "the first attempt's program decides for the later ones",
			in: "internal/state.Taken", where: "$r := *$held", old: "$r.Retention, $r.Tombstone = $life.Retention, $life.Tombstone", new: "", pkg: "dynamo/stream",
			run: "^TestTheLaterProgramsRetentionHolds$",
		},
		{
			rule: "RecordsLife", what: "a take-over by a ticket leaves the earlier program's",
			in: "dynamo.Store.Take", old: "takeHands + lasts(&$v, $t, $args)", new: "takeHands", pkg: "dynamo/stream", run: "^TestTheLaterProgramsRetentionHolds$",
		},
		{
			rule: "RecordsLife", what: "a ticket's taker without a tombstone leaves the earlier one",
			in: "dynamo.lasts", old: "len($gone) > 0", new: "len($gone) > 2", pkg: "dynamo/stream", run: "^TestTheLaterProgramsRetentionHolds$",
		},
		{
			rule: "RecordsLife", what: "a worker that gives an operation up decides for its function",
			in: "idem.unattended.takeTicket", old: "$a.leaseEnd($now), state.Life{Retention: $rec.Retention, Tombstone: $rec.Tombstone}", new: "$a.leaseEnd($now), $a.life", pkg: "dynamo/stream",
			run: "^TestSweepGivesUpAfterTheRetentionOnly$",
		},
		{
			rule: "RecordsLife", what: "a record that doesn't say its retention has none",
			in: "dynamo/internal/item.Fields", old: "$r.Retention == 0 && $r.State != store.Done", new: "$r.Retention < 0 && $r.State != store.Done", run: "^TestRecordRoundTrip$",
		},
		{
			rule: "RecordsLife", what: "a record says the default retention",
			in: "dynamo/internal/item.retained", old: "if $r.Retention == defaults.Retention {", new: "if $r.Retention == 0 {", pkg: "dynamo", run: "^TestAttributesThatAreAbsent$",
		},
		{
			rule: "ExpAfterLease", what: "a claim with a long lease expires before it",
			in: "internal/state.claimExpiry", old: "$end = $beyond", new: "_ = $beyond", run: transitions,
		},
		{
			rule: "NoExp", what: "a claim with a stored request has exp_s",
			in: "internal/state.Claimed", where: "$now time.Time, $lease time.Time", old: "$r.Keep = store.KeepOpen",
			new: "$r.Keep, $r.Expires = store.KeepOpen, claimExpiry($now, $lease, $r.Retention)", run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "NoExp", what: "a phase leaves exp_s where it is",
			in: "internal/state.Advanced", old: "$r.Keep, $r.Expires, $r.Blocked = store.KeepOpen, time.Time{}, false", new: "$r.Keep, $r.Blocked = store.KeepOpen, false",
			run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "NoExp", what: "a finish with jobs sets exp_s",
			in: "internal/state.Finished", old: "$r.Keep, $r.Expires, $r.Until, $r.Tombstone = store.KeepJobs, time.Time{}, $until,",
			new: "$r.Keep, $r.Expires, $r.Until, $r.Tombstone = store.KeepJobs, $until, $until,", run: transitions,
		},
		{
			rule: "NoExp", what: "a stuck record keeps its exp_s",
			in: "internal/state.MadeStuck", old: "$r.Keep, $r.Expires, $r.Blocked = store.KeepOpen, time.Time{}, false", new: "$r.Keep, $r.Blocked = store.KeepOpen, false",
			run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "PhaseKeep", what: "a record with committed phases may expire",
			in: "internal/state.Advanced", old: "$r.Keep, $r.Expires, $r.Blocked = store.KeepOpen, time.Time{}, false", new: "$r.Blocked = false", run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "ClaimOpen", what: "a claim with a stored request may expire",
			in: "internal/state.Claimed", where: "$now time.Time, $lease time.Time", old: "$r.Keep = store.KeepOpen",
			new: "$r.Expires = claimExpiry($now, $lease, $r.Retention)", run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "FinKeep", what: "a finish with undelivered jobs may expire",
			in: "internal/state.Finished", old: "len($held.Jobs) > 0 { $r.Keep", new: "len($held.Jobs) < 0 { $r.Keep", run: transitions,
		},
		{
			rule: "RelFree", what: "a release never gives a key up",
			in: "internal/state.free", old: "return len($b.Calls) == 0 && len($r.Doubts) == 0 && len($r.Phases) == 0 && len($r.Jobs) == 0 &&", new: "return $r.Ver < 1 &&",
			run: transitions,
		},
		{
			rule: "RelDoubted", what: "a release gives up a record with a call of an earlier attempt in doubt",
			in: "internal/state.free", old: "return len($r.Doubts) == 0 &&", new: "return", run: transitions,
		},
		{
			rule: "RelKeepID", what: "a release gives up an id from which keys were derived",
			in: "internal/state.Released", old: "With($held.Doubts, $calls...)", new: "$held.Doubts", pkg: "idem",
			run: "^TestFailedCallKeepsItsDerivedKey$",
		},
		{
			rule: "RelSent", what: "a release forgets what a call of an attempt that died has sent",
			in: "internal/state.inDoubt", old: "if slices.Contains($doubts, AnyCall) { return $sent }", new: "if slices.Contains($doubts, AnyCall) { return nil }",
			run: "^TestReleaseKeepsWhatMayHaveBeenSent$",
		},
		{
			rule: "RelSent", what: "an operation is stuck over a call that was never made",
			in: "internal/state.Released", old: "$r.Sent = inDoubt($r.Sent, $r.Doubts)", new: "_ = inDoubt", pkg: "idem", run: "^TestSendsNothingOfACallThatWasNotMade$",
		},
		{
			rule: "RelCommitted", what: "a release gives up what a merged claim committed",
			in: "internal/state.free", old: "&& len($r.Phases) == 0 && len($r.Jobs) == 0", new: "", pkg: "idem", run: "^TestFailureAfterAMergedClaimKeepsItsPhase$",
		},
		{
			rule: "AcceptedIsKept", what: "an error before the first commit frees what a resumable route has accepted",
			in: "internal/state.free", old: "&& ($r.Input == nil || $b.Refused)", new: "", pkg: "idem", run: "^TestAcceptedIsCompletedWhateverStoppedIt$",
		},
		{
			rule: "RefusedIsFree", what: "a resumable route's refusal doesn't free the key",
			in: "internal/state.free", old: "($r.Input == nil || $b.Refused)", new: "$r.Input == nil", pkg: "idem", run: "^TestAcceptedIsCompletedWhateverStoppedIt$",
		},
		{
			rule: "RefusedIsListed", what: "an operation that its program refuses looks like any other that is open",
			in: "internal/state.Released", where: "$now time.Time", old: "$r.Blocked = $b.Refusal != nil", new: "$r.Blocked = $b.Refusal != nil && $now.IsZero()", pkg: "idem",
			run: "^TestRefusedWaitsForPeople$",
		},
		{
			rule: "RefusedIsListed", what: "what goes on is still listed as refused",
			in: "internal/state.Advanced", old: "$r.Keep, $r.Expires, $r.Blocked = store.KeepOpen, time.Time{}, false", new: "$r.Keep, $r.Expires = store.KeepOpen, time.Time{}", pkg: "idem",
			run: "^TestBlockedUntilItGoesOn$",
		},
		{
			rule: "FinishNotesItsTime", what: "the jobs of a handler that took long are the sweep's at once",
			in: "internal/state.Finished", old: "$r.Run = Millis($now)", new: "_ = $now", pkg: "idem", run: "^TestFinishNotesItsTime$",
		},
		{
			rule: "ReleaseNotesItsTime", what: "what is given back late has no grace, and a key that is freed late is told as abandoned",
			in: "internal/state.Released", old: "$r.Lease, $r.Run = time.Time{}, Millis($now)",
			new: "$r.Lease = time.Time{}", pkg: "idem", run: "^TestGivingBackNotesItsTime$",
		},
		{
			rule: "FreedByNoClock", what: "a host whose clock is behind takes a freed key for one that lives",
			in: "internal/state.Free", old: "|| Freed($r)", new: "", pkg: "idem", run: "^TestFreedKeyUnderSkew$",
		},
		{
			rule: "SameShape", what: "any write of ours with the next ver is taken for this one",
			in: "internal/state.Land", old: "case $now.Ver == $prev.Ver+1 && SameShape($now, $next):", new: "case $now.Ver == $prev.Ver+1:", pkg: "idem",
			run: "^TestAnswerAfterALateCommitIsNotTakenForStored$",
		},
		{
			rule: "NoInputAtRest", what: "a finished record still has its request",
			in: "internal/state.Finished", old: "$r.Lease, $r.LastErr, $r.Input = store.Done, &$whole.response, time.Time{}, \"\", nil",
			new: "$r.Lease, $r.LastErr = store.Done, &$whole.response, time.Time{}, \"\"", pkg: "idem", run: "^TestPhasesSurviveACrashAtEveryCall$/^resumable$",
		},
	}
}
