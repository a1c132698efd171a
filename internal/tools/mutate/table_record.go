package main

// recordMutants break the pure part: what becomes of a record, and what an
// attempt does about one.
func recordMutants() []mutant {
	const (
		state       = "idem/state.go"
		judgements  = "^TestJudgeExhaustively$"
		transitions = "^TestTransitions$"
	)
	return []mutant{
		{
			rule: "MismatchLock", what: "another request is judged after the lock: it takes an abandoned record over",
			file: state, old: "case !same.request:\n", new: "case !same.request && held.State != Open:\n", run: judgements,
		},
		{
			rule: "MismatchLock", what: "another request is told of the lock first",
			file: state, old: "case !same.request:\n", new: "case !same.request && !held.Lease.After(now):\n", run: judgements,
		},
		{
			rule: "OwnFirst", what: "an attempt doesn't know its own claim, whose answer was lost",
			file: state, old: "case held.Owner == me && held.Ver == 1 && held.State != Stuck:", new: "case held.Owner == me && held.Ver < 1:", run: judgements,
		},
		{
			rule: "TombstoneJudge", what: "an answer past its end replays",
			file: state, old: "\tcase held.State == Done && !held.Expires.IsZero() && over(held.Until, now):\n\t\treturn expired\n", new: "", run: judgements,
		},
		{
			rule: "KeptReplays", what: "a record that is kept for its jobs says expired",
			file: state, old: "held.State == Done && !held.Expires.IsZero() && over(held.Until, now)", new: "held.State == Done && over(held.Until, now)",
			run: judgements,
		},
		{
			rule: "StuckStays", what: "a client takes a stuck record over",
			file: state, old: "case held.State == Stuck:\n\t\treturn stuck\n", new: "", run: judgements,
		},
		{
			rule: "LeaseHolds", what: "a client takes a running request over",
			file: state, old: "case held.Lease.After(now):\n\t\treturn inFlight\n\tdefault:", new: "default:", run: judgements,
		},
		{
			rule: "TakeBump", what: "a take-over or a renewal keeps ver",
			file: state, old: "r.Ver, r.Lease = held.Ver+1, millis(lease)", new: "r.Ver, r.Lease = held.Ver, millis(lease)", run: transitions,
		},
		{
			rule: "TakeBump", what: "a release keeps ver",
			file: state, old: "r.Ver, r.Lease, r.Run = held.Ver+1, ", new: "r.Ver, r.Lease, r.Run = held.Ver, ", run: transitions,
		},
		{
			rule: "TakeExp", what: "a take-over keeps exp_s: TTL deletes the record under its holder",
			file: state, old: "if !held.Expires.IsZero() {\n\t\tr.Expires", new: "if held.Expires.IsZero() && now.IsZero() {\n\t\tr.Expires", run: transitions,
		},
		{
			rule: "ExpAfterLease", what: "a claim with a long lease expires before it",
			file: state, old: "return seconds(later(now.Add(retention), lease.Add(time.Hour)))", new: "return seconds(now.Add(retention))", run: transitions,
		},
		{
			rule: "NoExp", what: "a claim with a stored request has exp_s",
			file: state, old: "\t\tr.Keep = KeepOpen // from the claim on: somebody is to complete it\n",
			new: "\t\tr.Keep, r.Expires = KeepOpen, claimExpiry(now, lease, retention)\n", run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "NoExp", what: "a phase leaves exp_s where it is",
			file: state, old: "r.Keep, r.Expires, r.Blocked = KeepOpen, time.Time{}, false // it", new: "r.Keep, r.Blocked = KeepOpen, false // it",
			run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "NoExp", what: "a finish with jobs sets exp_s",
			file: state, old: "r.Keep, r.Expires, r.Until, r.Tombstone = KeepJobs, time.Time{}, until,", new: "r.Keep, r.Expires, r.Until, r.Tombstone = KeepJobs, until, until,",
			run: transitions,
		},
		{
			rule: "NoExp", what: "a stuck record keeps its exp_s",
			file: state, old: "\tr.Keep, r.Expires, r.Blocked = KeepOpen, time.Time{}, false\n", new: "\tr.Keep, r.Blocked = KeepOpen, false\n",
			run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "PhaseKeep", what: "a record with committed phases may expire",
			file: state, old: "r.Keep, r.Expires, r.Blocked = KeepOpen, time.Time{}, false // it", new: "r.Blocked = false // it",
			run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "ClaimOpen", what: "a claim with a stored request may expire",
			file: state, old: "\t\tr.Keep = KeepOpen // from the claim on: somebody is to complete it\n",
			new: "\t\tr.Expires = claimExpiry(now, lease, retention)\n", run: "^TestKeptRecordsHaveNoExpiry$",
		},
		{
			rule: "FinKeep", what: "a finish with undelivered jobs may expire",
			file: state, old: "len(held.Jobs) > 0 {\n\t\tr.Keep", new: "len(held.Jobs) < 0 {\n\t\tr.Keep", run: transitions,
		},
		{
			rule: "RelFree", what: "a release never gives a key up",
			file: state, old: "return r.Ver == 1+b.renewed && len(b.calls) == 0 && len(r.Phases) == 0 && len(r.Jobs) == 0 &&", new: "return r.Ver < 1 &&", run: transitions,
		},
		{
			rule: "RelVer1", what: "a release gives up a record that was taken over",
			file: state, old: "return r.Ver == 1+b.renewed && len(b.calls) == 0 &&", new: "return len(b.calls) == 0 &&", run: transitions,
		},
		{
			rule: "RelKeepID", what: "a release gives up an id from which keys were derived",
			file: state, old: "return r.Ver == 1+b.renewed && len(b.calls) == 0 &&", new: "return r.Ver == 1+b.renewed &&", run: "^TestFailedCallKeepsItsDerivedKey$",
		},
		{
			rule: "RelSent", what: "a release forgets what a call of an attempt that died has sent",
			file: state, old: "case slices.Contains(doubts, AnyCall):\n\t\treturn sent", new: "case slices.Contains(doubts, AnyCall):\n\t\treturn nil",
			run: "^TestReleaseKeepsWhatMayHaveBeenSent$",
		},
		{
			rule: "RelSent", what: "an operation is stuck over a call that was never made",
			file: state, old: "\tr.Sent = inDoubt(r.Sent, r.Doubts)", new: "\t_ = inDoubt", run: "^TestSendsNothingOfACallThatWasNotMade$",
		},
		{
			rule: "RelCommitted", what: "a release gives up what a merged claim committed",
			file: state, old: "&& len(r.Phases) == 0 && len(r.Jobs) == 0", new: "", run: "^TestFailureAfterAMergedClaimKeepsItsPhase$",
		},
		{
			rule: "AcceptedIsKept", what: "an error before the first commit frees what a resumable route has accepted",
			file: state, old: " && (r.Input == nil || b.refused)", new: "", run: "^TestAcceptedIsCompletedWhateverStoppedIt$",
		},
		{
			rule: "RefusedIsFree", what: "a resumable route's refusal doesn't free the key",
			file: state, old: "(r.Input == nil || b.refused)", new: "r.Input == nil", run: "^TestAcceptedIsCompletedWhateverStoppedIt$",
		},
		{
			rule: "RefusedIsListed", what: "an operation that its program refuses looks like any other that is open",
			file: state, old: "r.Blocked = b.refusal != nil", new: "r.Blocked = b.refusal != nil && now.IsZero()", run: "^TestRefusedWaitsForPeople$",
		},
		{
			rule: "RefusedIsListed", what: "what goes on is still listed as refused",
			file: state, old: "r.Keep, r.Expires, r.Blocked = KeepOpen, time.Time{}, false // it goes on", new: "r.Keep, r.Expires = KeepOpen, time.Time{} // it goes on",
			run: "^TestBlockedUntilItGoesOn$",
		},
		{
			rule: "FinishNotesItsTime", what: "the jobs of a handler that took long are the sweep's at once",
			file: state, old: "\t\tr.Run = millis(now) // from now on", new: "\t\t_ = now // from now on", run: "^TestFinishNotesItsTime$",
		},
		{
			rule: "ReleaseNotesItsTime", what: "what is given back late has no grace, and a key that is freed late is told as abandoned",
			file: state, old: "r.Ver, r.Lease, r.Run = held.Ver+1, time.Time{}, millis(now)", new: "r.Ver, r.Lease = held.Ver+1, time.Time{}",
			run: "^TestGivingBackNotesItsTime$",
		},
		{
			rule: "FreedInThePast", what: "a freed key expires now, which a host whose clock is behind doesn't see",
			file: state, old: "seconds(now).Add(-time.Minute), nil", new: "seconds(now), nil", run: "^TestFreedKeyUnderSkew$",
		},
		{
			rule: "SameShape", what: "any write of ours with the next ver is taken for this one",
			file: state, old: "case now.Ver == prev.Ver+1 && sameShape(now, next):", new: "case now.Ver == prev.Ver+1:",
			run: "^TestAnswerAfterALateCommitIsNotTakenForStored$",
		},
		{
			rule: "NoInputAtRest", what: "a finished record still has its request",
			file: state, old: "r.LastErr, r.Input = &resp, time.Time{}, \"\", nil", new: "r.LastErr = &resp, time.Time{}, \"\"",
			run: "^TestPhasesSurviveACrashAtEveryCall$/^resumable$",
		},
	}
}
