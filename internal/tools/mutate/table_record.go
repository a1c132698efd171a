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
			in: "idem.judge", where: "$held *Record", old: "case !$same.request:", new: "case !$same.request && $held.State != Open:", run: judgements,
		},
		{
			rule: "MismatchLock", what: "another request is told of the lock first",
			in: "idem.judge", where: "$held *Record, $me string, $same same, $now time.Time", old: "case !$same.request:",
			new: "case !$same.request && !$held.Lease.After($now):", run: judgements,
		},
		{
			rule: "OwnFirst", what: "an attempt doesn't know its own claim, whose answer was lost",
			in: "idem.judge", old: "case $held.Owner == $me && $held.Ver == 1 && $held.State != Stuck:", new: "case $held.Owner == $me && $held.Ver < 1:", run: judgements,
		},
		{
			rule: "TombstoneJudge", what: "an answer past its end replays",
			in: "idem.judge", old: "case $held.State == Done && !$held.Expires.IsZero() && over($held.Until, $now): return expired", new: "", run: judgements,
		},
		{
			rule: "KeptReplays", what: "a record that is kept for its jobs says expired",
			in: "idem.judge", old: "$held.State == Done && !$held.Expires.IsZero() && over($held.Until, $now)", new: "$held.State == Done && over($held.Until, $now)",
			run: judgements,
		},
		{
			rule: "StuckStays", what: "a client takes a stuck record over",
			in: "idem.judge", old: "case $held.State == Stuck: return stuck", new: "", run: judgements,
		},
		{
			rule: "LeaseHolds", what: "a client takes a running request over",
			in: "idem.judge", old: "case $held.Lease.After($now): return inFlight; default:", new: "default:", run: judgements,
		},
		{
			rule: "TakeBump", what: "a take-over or a renewal keeps ver",
			in: "idem.renewed", old: "$r.Ver, $r.Lease = $held.Ver+1, millis($lease)", new: "$r.Ver, $r.Lease = $held.Ver, millis($lease)", run: transitions,
		},
		{
			rule: "TakeBump", what: "a release keeps ver",
			in: "idem.released", old: "$r.Ver, $r.Lease, $r.Run = $held.Ver+1,", new: "$r.Ver, $r.Lease, $r.Run = $held.Ver,", run: transitions,
		},
		{
			rule: "TakeExp", what: "a take-over keeps exp_s: TTL deletes the record under its holder",
			in: "idem.renewed", where: "$now, $lease time.Time", old: "if !$held.Expires.IsZero() { $r.Expires",
			new: "if $held.Expires.IsZero() && $now.IsZero() { $r.Expires", run: transitions,
		},
		{
			rule: "ExpAfterLease", what: "a claim with a long lease expires before it",
			in: "idem.claimExpiry", old: "return seconds(later($now.Add($retention), $lease.Add(time.Hour)))", new: "return seconds($now.Add($retention))", run: transitions,
		},
		{
			rule: "NoExp", what: "a claim with a stored request has exp_s",
			in: "idem.claimed", where: "$now time.Time, $lease time.Time, $retention time.Duration", old: "$r.Keep = KeepOpen",
			new: "$r.Keep, $r.Expires = KeepOpen, claimExpiry($now, $lease, $retention)", run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "NoExp", what: "a phase leaves exp_s where it is",
			in: "idem.advanced", old: "$r.Keep, $r.Expires, $r.Blocked = KeepOpen, time.Time{}, false", new: "$r.Keep, $r.Blocked = KeepOpen, false",
			run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "NoExp", what: "a finish with jobs sets exp_s",
			in: "idem.finished", old: "$r.Keep, $r.Expires, $r.Until, $r.Tombstone = KeepJobs, time.Time{}, $until,",
			new: "$r.Keep, $r.Expires, $r.Until, $r.Tombstone = KeepJobs, $until, $until,", run: transitions,
		},
		{
			rule: "NoExp", what: "a stuck record keeps its exp_s",
			in: "idem.stuckFor", old: "$r.Keep, $r.Expires, $r.Blocked = KeepOpen, time.Time{}, false", new: "$r.Keep, $r.Blocked = KeepOpen, false",
			run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "PhaseKeep", what: "a record with committed phases may expire",
			in: "idem.advanced", old: "$r.Keep, $r.Expires, $r.Blocked = KeepOpen, time.Time{}, false", new: "$r.Blocked = false", run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "ClaimOpen", what: "a claim with a stored request may expire",
			in: "idem.claimed", where: "$now time.Time, $lease time.Time, $retention time.Duration", old: "$r.Keep = KeepOpen",
			new: "$r.Expires = claimExpiry($now, $lease, $retention)", run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "FinKeep", what: "a finish with undelivered jobs may expire",
			in: "idem.finished", old: "len($held.Jobs) > 0 { $r.Keep", new: "len($held.Jobs) < 0 { $r.Keep", run: transitions,
		},
		{
			rule: "RelFree", what: "a release never gives a key up",
			in: "idem.free", old: "return $r.Ver == 1+$b.renewed && len($b.calls) == 0 && len($r.Phases) == 0 && len($r.Jobs) == 0 &&", new: "return $r.Ver < 1 &&",
			run: transitions,
		},
		{
			rule: "RelVer1", what: "a release gives up a record that was taken over",
			in: "idem.free", old: "return $r.Ver == 1+$b.renewed && len($b.calls) == 0 &&", new: "return len($b.calls) == 0 &&", run: transitions,
		},
		{
			rule: "RelKeepID", what: "a release gives up an id from which keys were derived",
			in: "idem.free", old: "return $r.Ver == 1+$b.renewed && len($b.calls) == 0 &&", new: "return $r.Ver == 1+$b.renewed &&",
			run: "^TestFailedCallKeepsItsDerivedKey$",
		},
		{
			rule: "RelSent", what: "a release forgets what a call of an attempt that died has sent",
			in: "idem.inDoubt", old: "case slices.Contains($doubts, AnyCall): return $sent", new: "case slices.Contains($doubts, AnyCall): return nil",
			run: "^TestReleaseKeepsWhatMayHaveBeenSent$",
		},
		{
			rule: "RelSent", what: "an operation is stuck over a call that was never made",
			in: "idem.released", old: "$r.Sent = inDoubt($r.Sent, $r.Doubts)", new: "_ = inDoubt", run: "^TestSendsNothingOfACallThatWasNotMade$",
		},
		{
			rule: "RelCommitted", what: "a release gives up what a merged claim committed",
			in: "idem.free", old: "&& len($r.Phases) == 0 && len($r.Jobs) == 0", new: "", run: "^TestFailureAfterAMergedClaimKeepsItsPhase$",
		},
		{
			rule: "AcceptedIsKept", what: "an error before the first commit frees what a resumable route has accepted",
			in: "idem.free", old: "&& ($r.Input == nil || $b.refused)", new: "", run: "^TestAcceptedIsCompletedWhateverStoppedIt$",
		},
		{
			rule: "RefusedIsFree", what: "a resumable route's refusal doesn't free the key",
			in: "idem.free", old: "($r.Input == nil || $b.refused)", new: "$r.Input == nil", run: "^TestAcceptedIsCompletedWhateverStoppedIt$",
		},
		{
			rule: "RefusedIsListed", what: "an operation that its program refuses looks like any other that is open",
			in: "idem.released", where: "$now time.Time", old: "$r.Blocked = $b.refusal != nil", new: "$r.Blocked = $b.refusal != nil && $now.IsZero()",
			run: "^TestRefusedWaitsForPeople$",
		},
		{
			rule: "RefusedIsListed", what: "what goes on is still listed as refused",
			in: "idem.advanced", old: "$r.Keep, $r.Expires, $r.Blocked = KeepOpen, time.Time{}, false", new: "$r.Keep, $r.Expires = KeepOpen, time.Time{}",
			run: "^TestBlockedUntilItGoesOn$",
		},
		{
			rule: "FinishNotesItsTime", what: "the jobs of a handler that took long are the sweep's at once",
			in: "idem.finished", old: "$r.Run = millis($now)", new: "_ = $now", run: "^TestFinishNotesItsTime$",
		},
		{
			rule: "ReleaseNotesItsTime", what: "what is given back late has no grace, and a key that is freed late is told as abandoned",
			in: "idem.released", old: "$r.Ver, $r.Lease, $r.Run = $held.Ver+1, time.Time{}, millis($now)", new: "$r.Ver, $r.Lease = $held.Ver+1, time.Time{}",
			run: "^TestGivingBackNotesItsTime$",
		},
		{
			rule: "FreedInThePast", what: "a freed key expires now, which a host whose clock is behind doesn't see",
			in: "idem.released", old: "seconds($now).Add(-time.Minute), nil", new: "seconds($now), nil", run: "^TestFreedKeyUnderSkew$",
		},
		{
			rule: "SameShape", what: "any write of ours with the next ver is taken for this one",
			in: "idem.land", old: "case $now.Ver == $prev.Ver+1 && sameShape($now, $next):", new: "case $now.Ver == $prev.Ver+1:",
			run: "^TestAnswerAfterALateCommitIsNotTakenForStored$",
		},
		{
			rule: "NoInputAtRest", what: "a finished record still has its request",
			in: "idem.finished", old: `$r.LastErr, $r.Input = &$resp, time.Time{}, "", nil`, new: `$r.LastErr = &$resp, time.Time{}, ""`,
			run: "^TestPhasesSurviveACrashAtEveryCall$/^resumable$",
		},
	}
}
