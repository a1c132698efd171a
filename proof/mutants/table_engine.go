package main

// engineMutants break how an attempt claims, writes and releases.
func engineMutants() []mutant {
	return []mutant{
		{
			rule: "OwnNonce", what: "all attempts of a process have one nonce",
			in: "idem.subject.find", old: "$a.owner, $a.id, $a.pk, $a.print = $text[:nonceSize],", new: `$a.owner, $a.id, $a.pk, $a.print = "process",`,
			pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/^engine_(in-flight|take-over)$",
		},
		{
			rule: "RFJudges", what: "what a read before the claim finds is an answer, whatever it is",
			in: "idem.before.look", old: "$held, $v, $err = $a.judgeOrTakeOver($ctx, $rec, $until)", new: "$held, $v, $err = $rec, state.Replay, nil",
			run: "^TestARetryPaysLessAndNothingElse$",
		},
		{
			rule: "CacheDone", what: "the cache takes records that aren't finished",
			in: "idem.cache.put", old: "$r.State != store.Done ||", new: "", run: "^TestCacheTakesFinishedRecordsOnly$",
		},
		{
			rule: "CacheNonces", what: "an attempt claims with an empty nonce after the cache couldn't answer",
			in: "idem.reply.remembered", old: "$a.owner, $a.id = rand.Text(), rand.Text()", new: "$a.owner, $a.id = rand.Text()[:0], rand.Text()[:0]", pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/^engine_cache$",
		},
		{
			rule: "CacheObserve", what: "an observing engine claims with an empty nonce, since its cache knows the key",
			in: "idem.New", old: "if $opt.Key == KeyObserve {", new: "if false {", pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/^engine_cache$",
		},
		{
			rule: "CacheHeaders", what: "the cache replays headers that the store's replay leaves out",
			in: "idem.cache.put", old: "replayable($r.Response)", new: "", pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/^engine_cache$",
		},
		{
			rule: "CacheShares", what: "a caller's change of a replay changes the cache",
			in: "idem.reply.answer", old: "$resp = $held.Response.Clone()", new: "$resp = *$held.Response", pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/^engine_replay$",
		},
		{
			rule: "CacheBound", what: "the cache holds what no answer needs",
			in: "idem.cache.put", old: `$answer.Phases, $answer.Jobs, $answer.Input, $answer.LastErr, $answer.Seal = nil, nil, nil, "", nil`, new: "", run: "^TestCacheBoundsMemory$",
		},
		{
			rule: "FailOpenSealed", what: "a request runs unprotected though there may be an answer behind a key that can't be had",
			in: "idem.unreachable", old: "&& !errors.Is($err, store.ErrSealed)", new: "",
			run: "^TestFailOpenNotOverAnUnreadableRecord$",
		},
		{
			rule: "FailOpenSeen", what: "a request runs unprotected though its record was seen",
			in: "idem.entry.proceed", old: "case $e.opt.FailOpen && !$a.seen && unreachable($err):", new: "case $e.opt.FailOpen && unreachable($err):",
			run: "^TestFailOpenNotOverARecordThatWasSeen$",
		},
		{
			rule: "MaxClaim", what: "a claim is sent again however long the sandbox was frozen",
			in: "idem.attempt.claim", old: "$now.Round(0).Sub($begun) > maxClaim || $seen != nil && $seen.ID == $a.id", new: "$now.Before($begun) || $seen != nil && $seen.ID == $a.id", run: "^TestThawedAfterALifetime$",
		},
		{
			rule: "MinRetention", what: "a record may expire before a late packet of its claim",
			in: "idem.Options.validate", old: "$check($o.Retention >= defaults.MinRetention,", new: "$check($o.Retention > 0,", run: "^TestNewPanicsOnWhatCantWork$",
		},
		{
			rule: "FencedStops", what: "an overtaken attempt takes its write for landed",
			in: "idem.attempt.sendOnce", old: "return $held, state.Land($held, $c.prev, $c.next, $a.owner), nil; case !errors.Is",
			new: "return $held, state.Landed, nil; case !errors.Is", pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/^engine_take-over$",
		},
		{
			rule: "UnknownIsRead", what: "an unknown outcome is taken for not applied",
			in: "idem.attempt.sendOnce", old: "return $now, state.Land($now, $c.prev, $c.next, $a.owner), nil }", new: "return $now, state.NotYet, nil }",
			run: "^TestOneReadTellsWhereEveryAnswerIsLost$",
		},
		{
			rule: "Adopt", what: "after a lost answer the run at hand counts, not what was stored",
			in: "idem.flow.write", where: "$next := $build(", old: "case $l == state.Landed: $f.set($held); return $held, nil",
			new: "case $l == state.Landed: $f.set($next); return $next, nil", run: "^TestWhatWasStoredCounts$",
		},
		{
			rule: "Adopt", what: "after a lost merged claim the run at hand counts",
			in: "idem.flow.claimed", where: "$build func(*store.Record) *store.Record) (*store.Record, error) { $a :=", old: "case $v == state.Own: $f.set($held)",
			new: "case $v == state.Own: if mine := $build($a.fresh($a.opt.Now())); state.SameShape($held, mine) { $held = mine }; $f.set($held)", run: "^TestWhatWasStoredCounts$",
		},
		{
			rule: "Adopt", what: "after a lost finish the answer at hand is given",
			in: "idem.reply.finished", where: "$rec, $made *store.Record, $resp Response", old: "return Result{Response: $rec.Response.Clone(), Expires: state.Lifetime($rec)}, nil",
			new: "return Result{Response: $resp, Expires: state.Lifetime($rec)}, nil", run: "^TestWhatWasStoredCounts$",
		},
		{
			rule: "CWCCheck", what: "an answer leaves a merged claim before the record was seen",
			in: "idem.flow.release", old: "if $rec == nil { return $f.consult($ctx, $resp, $err) }; $cause",
			new: "if $rec == nil && $err != nil { return Result{}, &handlerError{$err} }; if $rec == nil { return Result{Response: $resp}, nil }; $cause",
			run: "^TestMergedClaimConsultsTheRecord$",
		},
		{
			rule: "MergedTakeOver", what: "a merged claim that takes a record over goes on as if it were new",
			in: "idem.flow.claimed", old: "$f.restarts()", new: "", run: "^TestPhasesSurviveACrashAtEveryCall$/^claim_merged$",
		},
		{
			rule: "CWCTakeOver", what: "an answer that isn't stored leaves past what an earlier attempt committed and abandoned",
			in: "idem.flow.consult", old: "case $v == state.TakeOver: $f.set($held); $f.restarts(); return Result{}, nil; case $v != state.Again:",
			new: "case $v != state.Again && $v != state.TakeOver:", run: "^TestMergedClaimAnswersPastItsOwnCommit$",
		},
		{
			rule: "AnswerAsStored", what: "an answer with other headers than the stored one is given",
			in: "idem.samePayload", old: "&& maps.EqualFunc($rec.Response.Header, $made.Response.Header, slices.Equal)",
			new: `&& (maps.EqualFunc($rec.Response.Header, $made.Response.Header, slices.Equal) || slices.Contains([]string{}, "") == false)`,
			run: "^TestFirstAnswerIsTheStoredOne$",
		},
		{
			rule: "AnswerWithItsJobs", what: "an answer is given though the commit that has its jobs failed",
			in: "idem.flow.conclude", old: "if $rec.Keep == store.KeepOpen || $f.outstanding() {", new: "if $rec.Keep == store.KeepOpen {", run: "^TestAnswerWithoutItsJobs$",
		},
		{
			rule: "RelForm", what: "a repeated release has the form of the first",
			in: "idem.attempt.release", where: "$rec *store.Record", old: "$next := state.Released($prev, $a.opt.Now(), $b)",
			new: "$next := state.Released($prev, $a.opt.Now(), $b); if state.Freed(state.Released($rec, $a.opt.Now(), $b)) { $next.Keep, $next.Expires = store.KeepNothing, state.Seconds($a.opt.Now()) }",
			run: "^TestReleaseAfterALateCommitKeepsIt$",
		},
		{
			rule: "TellKept", what: "a client hears an answer that isn't kept while its operation goes on",
			in: "idem.flow.release", old: "($rerr != nil || state.Kept($held)):", new: "$rerr != nil:", run: "^TestToldIsKept$",
		},
		{
			rule: "TellLanded", what: "a client hears a refusal though nobody knows whether the key is free",
			in: "idem.flow.release", old: "($rerr != nil ||", new: "(", run: "^TestRefusalIsWithheldIfItsReleaseIsUnknown$",
		},
		{
			rule: "TellTries", what: "a handler whose answers are withheld runs for ever",
			in: "internal/state.Released", old: "if !$b.Counted { $r.Tries++ }", new: "", pkg: "idem", run: "^TestWithheldAnswersEnd$",
		},
		{
			rule: "TellTries", what: "a completer's try is counted twice",
			in: "idem.flow.release", old: "$b.Answers, $b.Counted = $err == nil && final($resp.Status), $a.resumed", new: "$b.Answers = $err == nil && final($resp.Status)",
			run: "^TestWithheldFromACompleter$",
		},
		{
			rule: "TellAccepted", what: "a client waits for an operation that only it continues",
			in: "idem.reply.unfinished", old: "$a.opt.InFlight == InFlightAccept && state.Completable($rec)", new: "$a.opt.InFlight == InFlightAccept", run: "^TestWithheldIsAccepted$",
		},
		{
			rule: "TellAccepted", what: "the status says for a day that somebody works",
			in: "idem.Engine.Status", old: "if state.Completable($rec) {", new: "if $rec != nil {", run: "^TestWithheldIsAccepted$",
		},
		{
			rule: "TellSoon", what: "a handler whose answers are withheld runs every second",
			in: "internal/state.Withheld", old: "BackOff(withheldFor, $rec.Tries)", new: "BackOff(withheldFor, 1)", pkg: "idem", run: "^TestWithheldAnswersEnd$",
		},
		{
			rule: "TellOwn", what: "a client is told what became of another operation",
			in: "idem.problemIn", old: "case $ours == nil || !$ours.phase:", new: "case $ours == nil:", run: "^TestErrorsOfOtherOperationsAreNoAnswers$",
		},
		{
			rule: "TellSoon", what: "a client whose answer was withheld is told to retry while nothing would run",
			in: "idem.reply.unfinished", old: "$err.RetryAfter = max($until.Sub($a.opt.Now()), time.Second)", new: "_ = $until", run: "^TestWithheldAnswersEnd$",
		},
		{
			rule: "TellSoon", what: "a retry runs the handler again at once, whose answer was withheld",
			in: "internal/state.Judge", old: "case $now.Before(Withheld($held)): return TooSoon", new: "", pkg: "idem", run: "^TestWithheldAnswersEnd$",
		},
		{
			rule: "TellWork", what: "an answer that isn't stored passes over recorded work",
			in: "idem.entry.once", old: "($keeps || $failed == nil && final($resp.Status))", new: "$keeps", run: "^TestPlainRefusalOverCommittedWork$",
		},
		{
			rule: "TellNothing", what: "an error of a phase says that nothing was done",
			in: "idem.problemIn", old: "case errors.Is($err, ErrNoTime):", new: "case errors.Is($err, ErrNoTime) && errors.Is($err, ErrStuck):", run: "^TestNoTimeInAPhaseIsUnfinished$",
		},
		{
			rule: "KeptCall", what: "a record may expire while a call that its process made is in doubt",
			in: "internal/state.Calling", old: "$r.Keep, $r.Expires, $r.Mark,", new: "_, _, $r.Mark,", pkg: "idem", run: "^TestCallInDoubtDoesNotExpire$",
		},
		{
			rule: "MarkFirst", what: "a call is made before the record says so",
			in: "idem.phaseRun.foreign", old: "$p.record().Mark != $mark", new: "false", run: "^TestEarlyAnswerAfterADeathInACall$",
		},
		{
			rule: "EarlyWaits", what: "an answer without the call in doubt is stored",
			in: "idem.flow.finish", old: "$f.log.missed($f.record().Doubts)", new: "false", run: "^TestEarlyAnswerAfterADeathInACall$",
		},
		{
			rule: "EarlyWaits", what: "an answer without the call in doubt that isn't stored is told",
			in: "idem.flow.release", old: "$err == nil && $f.log.missed($rec.Doubts)", new: "false", run: "^TestEarlyAnswerAfterADeathInACall$",
		},
		{
			rule: "KeptCall", what: "a claim that is declared to make calls expires",
			in: "idem.attempt.fresh", old: "if $a.opt.CallsOut { $r.Keep, $r.Mark = store.KeepOpen, state.AnyCall }", new: "", run: "^TestCallsOfALeadingForeign$",
		},
		{
			rule: "BodyOrOpen", what: "an answer that couldn't be written in time is given up for its status",
			in: "idem.flow.mayDrop", old: "$rec != nil && !state.Kept($rec)", new: "$rec != nil", run: "^TestAnswerIsKeptOrTheRecordStaysOpen$",
		},
		{
			rule: "BodyOrOpen", what: "the answer goes beside a deferred result, for lack of time",
			in: "idem.flow.mayDrop", old: "&& !$f.defers()", new: "", run: "^TestAnswerIsKeptOrTheRecordStaysOpen$",
		},
		{
			rule: "RoomOfAClaim", what: "a claim with a large phase leaves no room for take-overs",
			in: "dynamo.Store.Claim", old: "leavesRoom(&nothing, $c.Next, $v.Box, $body)", new: "leavesRoom($c.Next, $c.Next, $v.Box, $body)", run: "^TestClaimLeavesRoomForATakeOver$",
		},
		{
			rule: "RoomToPark", what: "an answer with jobs leaves no room for why they are parked",
			in: "dynamo.leavesRoom", old: "$next.State != store.Open && len($next.Jobs) == 0 ||", new: "$next.State != store.Open ||", run: "^TestAnswerLeavesRoomForParking$",
		},
		{
			rule: "LetGo", what: "a request that is gone waits for people, though nothing was done",
			in: "idem.unattended.goOn", where: "$f, $why := $a.flow($rec),", old: `case $missing != nil: $why = "the stored request is gone: " + $missing.Error()`,
			new: "case $missing != nil: return Result{}, $a.flow($rec).markStuck(context.Background(), $missing.Error())", pkg: "dynamo", run: "^TestRequestThatEndedWithNothingDone$",
		},
		{
			rule: "LetGo", what: "a freed key is told as a stuck operation",
			in: "idem.unattended.endTries", old: "return $a.fail(\"resume\", fmt.Errorf(\"%w: the key was freed\", jobs.ErrMoved))", new: "return nil", run: "^TestNothingDoneIsNotMarkedStuck$",
		},
		{
			rule: "LetGo", what: "requests under which nothing was done wait for people",
			in: "idem.unattended.endTries", old: "!state.Kept(state.Released($rec, $a.opt.Now(), $b))", new: "$rec == nil", run: "^TestNothingDoneIsLetGo$",
		},
		{
			rule: "MaxInput", what: "one client has the table store 6 MB a request",
			in: "idem.storable", old: "len($in.Body) > $maxInput", new: "len($in.Body) > store.MaxStoredRequest", run: "^TestLargeRequestIsRefusedByDefault$",
		},
		{
			rule: "KeyAfterItsPhase", what: "a key of a phase that has ended is given out",
			in: "idem.Tx.Key", old: "if $tx.closed {", new: "if $tx.closed && $tx.made != nil && len($tx.made) < 0 {", run: "^TestKeyAfterItsPhase$",
		},
		{
			rule: "CacheForgets", what: "the cache answers for ever for a record that was forgotten",
			in: "idem.cache.get", old: "if time.Now().After($one.until) {", new: "if $one.until.IsZero() {", run: "^TestCacheHeedsForget$",
		},
		{
			rule: "CacheForgets", what: "the cache of the engine that forgets a record still has it",
			in: "idem.core.decide", old: "defer $e.cache.drop($pk)", new: "", run: "^TestCacheHeedsForget$",
		},
		{
			rule: "JobsWaiting", what: "jobs that were delivered count as waiting",
			in: "idem.attempt.jobsNow", old: "$now != nil { return len($now.Jobs)", new: "$now != nil { return maxJobs", run: "^TestDeliveredJobsDoNotCount$",
		},
		{
			rule: "RelAgain", what: "a release that meets its own later write gives up: the key stays locked",
			in: "idem.attempt.release", old: "$prev = $held }", new: "return $held, state.Fenced, nil }", run: "^TestReleaseAfterALateCommitKeepsIt$",
		},
	}
}

// patienceMutants break how long an attempt waits for the store.
func patienceMutants() []mutant {
	return []mutant{
		{
			rule: "Patience", what: "a finish is given up while there is time",
			in: "idem.patient", old: "patient = math.MaxInt", new: "patient = maxRounds + 0*math.MaxInt", run: "^TestFinishHasAllTheTimeThereIs$",
		},
		{
			rule: "AnswerTime", what: "writes after the handler go on until the deadline",
			in: "idem.clock.arrives", old: "$deadline.Add(-$a.opt.Reserve/answerShare)", new: "$deadline.Add(-$a.opt.Reserve/answerShare/100)",
			run: "^TestEveryAnswerIsOutInTime$",
		},
		{
			rule: "AnswerTime", what: "what the store took from the deadline's other side is given to the next call",
			in: "idem.clock.until", old: "|| $a.spent.Load() {", new: "{", run: "^TestEveryAnswerIsOutInTime$",
		},
		{
			rule: "AnswerTime", what: "what is done before the handler goes on into its reserve",
			in: "idem.clock.arrives", old: "$deadline.Add(-$a.opt.Reserve),", new: "$deadline.Add(-$a.opt.Reserve/answerShare),",
			run: "^(TestEveryAnswerIsOutInTime|TestEveryResumeIsOutInTime)$",
		},
		{
			rule: "AnswerTime", what: "a look before the claim takes all the time",
			in: "idem.before.glance", old: "half($until)", new: "time.Until($until)", run: "^TestLookThatHangs$",
		},
		{
			rule: "HalfTheTime", what: "one commit may take all the time left",
			in: "idem.half", old: "max(time.Until($until)/2, 100*time.Millisecond)", new: "max(time.Until($until), 100*time.Millisecond)",
			run: "^TestOneCommitNeverTakesAllTheTime$",
		},
		{
			rule: "MaxClaim", what: "there is no limit on a claim but the invocation's",
			in: "idem.attempt.claim", old: "$until = earlier($until, time.Now().Add(maxClaim))", new: "$until = earlier($until, time.Now().Add(1000*maxClaim))",
			run: "^TestClaimIsGivenUpAfterAMinute$",
		},
		{
			rule: "Unstored", what: "an answer that could not be stored looks like one that was",
			in: "idem.flow.conclude", old: "Result{Response: $resp, Unstored: true}", new: "Result{Response: $resp}", run: "^TestUnstoredAnswerSaysSo$",
		},
		{
			rule: "Unstored", what: "the handler's own word on it goes out",
			in: "idem.Result.mark", old: "delete($h, statusHeader)", new: "", run: "^TestUnstoredAnswerSaysSo$",
		},
		{
			rule: "Unstored", what: "the client goes on with a key whose answer could not be stored",
			in: "idem/client.operation.attempt", old: `if (isUnstored($o.heard) || $o.ignored()) && $o.key != "" {`, new: `if $o.ignored() && $o.key != "" {`, pkg: "idem/client",
			run: "^TestLifetimeOfAnOperation$",
		},
		{
			rule: "Unstored", what: "the journal forgets what a torn answer said of it",
			in: "idem/client.operation.attempt", old: "$o.note(nil)", new: "", pkg: "idem/client", run: "^TestLifetimeOfAnOperation$",
		},
		{
			rule: "Crossed", what: "a crossed write is taken as overtaken",
			in: "idem.flow.write", where: "$a := $f.a", old: "case $l == state.Crossed:", new: "case $l == state.Crossed && $a == nil:", run: "^TestLateCommitOfOnesOwnIsNoTakeOver$",
		},
	}
}

// renewMutants break how a handler that outlives its time keeps its lease.
func renewMutants() []mutant {
	return []mutant{
		{
			rule: "Renew", what: "no lease is renewed",
			in: "idem.flow.keep", old: "if $f.a.opt.RenewFor < 0 {", new: "if $f.a.opt.RenewFor != 0 {", run: "^TestHandlerThatOutlivesItsTimeKeepsItsKey$",
		},
		{
			rule: "Renew", what: "what ends after its time is not stored",
			in: "idem.clock.until", where: "$rec *store.Record", old: "if $now.Before($a.end) || $a.spent.Load() {",
			new: "if $now.Before($a.end) || $a.spent.Load() || $rec != nil {", run: "^TestHandlerThatOutlivesItsTimeKeepsItsKey$",
		},
		{
			rule: "RenewLate", what: "requests that end in time are renewed",
			in: "idem.flow.keep", old: "time.AfterFunc(time.Until($f.a.deadline)+$f.a.spare, func() {",
			new: "time.AfterFunc(time.Until($f.a.deadline)/2, func() { $f.a.spare *= 4", run: "^TestRequestInTimeIsNotRenewed$",
		},
		{
			rule: "RenewBound", what: "a handler that hangs keeps its key for ever",
			in: "idem.flow.renew", old: "time.Until($a.deadline) + $a.opt.RenewFor", new: "time.Until($a.deadline) + 100*$a.opt.RenewFor", run: "^TestRenewalsEnd$",
		},
		{
			rule: "RenewTurn", what: "a renewal and a phase's commit go side by side",
			in: "idem.flow.write", old: "if $f.turn != nil {", new: "if $f.turn != nil && cap($f.turn) > 1 {", run: "^TestRenewalsAndPhasesGoTogether$",
		},
		{
			rule: "RenewCross", what: "a renewal whose answer was lost fences its own attempt's commit",
			in: "idem.flow.write", where: "$a := $f.a", old: "$l == state.Crossed && state.Renewal($held, $prev) {", new: "$l == state.Crossed && state.Renewal($held, $prev) && $a == nil {",
			run: "^TestRenewalsAndPhasesGoTogether$",
		},
		{
			rule: "RenewCross", what: "any later write of the attempt is passed over as a renewal",
			in: "internal/state.Renewal", old: "$now.Lease.After($prev.Lease) && SameShape($now, $prev)", new: "$now.Lease.After($prev.Lease)", run: "^TestOnlyARenewalIsARenewal$",
		},
		{
			rule: "RenewCross", what: "a write that moves no lease is passed over as a renewal",
			in: "internal/state.Renewal", old: "$now.Lease.After($prev.Lease) && SameShape($now, $prev)", new: "SameShape($now, $prev)", run: "^TestOnlyARenewalIsARenewal$",
		},
		{
			rule: "RenewStop", what: "a renewal outlives its handler",
			in: "idem.lease.unkeep", old: "close($quit); <-$done", new: "close($quit); _ = $done", run: "^TestNoRenewalOutlivesItsHandler$",
		},
		{
			rule: "RenewFenced", what: "a handler whose lease was taken over goes on calling others",
			in: "idem.flow.renew", old: `_ = $f.fail(fmt.Errorf("%w: another attempt has taken over", ErrLeaseLost))`, new: "_ = fmt.Errorf",
			run: "^TestRenewalThatIsFencedEndsTheOperation$",
		},
		{
			rule: "RenewFenced", what: "a handler isn't told that its lease is lost",
			in: "idem.flow.write", old: "$f.loses()", new: "", run: "^TestLostLeaseEndsTheHandlersContext$",
		},
		{
			rule: "RenewOpen", what: "a renewal or a release goes on top of an answer",
			in: "idem.flow.renew", old: "case $held.State != store.Open: return", new: "case $held.State != store.Open && $held == nil: return", run: "^TestRenewalLeavesAnAnswerAlone$",
		},
	}
}

// resumeMutants break what completers and operators do.
func resumeMutants() []mutant {
	return []mutant{
		{
			rule: "TakeOwnerK", what: "a ticket is good for another operation with the same ver",
			in: "internal/state.Fits", old: "$rec.Owner != $owner ||",
			new: "", pkg: "idem", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TakeVer", what: "a ticket is good whatever was written since",
			in: "internal/state.Fits", old: "|| $rec.Ver != $ver",
			new: "", pkg: "idem", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TakeLease", what: "a completer takes a running request over",
			in: "internal/state.Fits", old: "case $rec.Lease.After($now): return Held",
			new: "case $rec.Lease.After($now) && $rec.Ver < 0: return Held", pkg: "idem", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TakeOpen", what: "a completer takes a finished or stuck record over",
			in: "internal/state.Fits", old: "|| $rec.State != store.Open || Free", new: "|| Free", pkg: "idem", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TakeExpired", what: "a key that was given back is given up",
			in: "internal/state.Fits", old: "|| Free($rec, $now): return Moved",
			new: ": return Moved", pkg: "idem", run: "^TestFreedKeyIsNotGivenUp$",
		},
		{
			rule: "TakeInput", what: "a completer takes up what it has no request for",
			in: "internal/state.MayTake", old: "case $rec.Input == nil || !$rec.Expires.IsZero():", new: "case $rec.Ver < 0:", pkg: "idem", run: "^TestTicketWithoutARequestIsRefused$",
		},
		{
			rule: "TriesTake", what: "tries aren't counted in the take-over",
			in: "internal/state.TakenUp", old: "$r.Tries++",
			new: "", pkg: "idem", run: "^TestTriesThatDieAreCounted$",
		},
		{
			rule: "TakeHandler", what: "a handler ends another handler's operation",
			in: "internal/state.MayTake", old: "case !slices.Contains($t.Handlers, $rec.Handler):", new: "case !slices.Contains($t.Handlers, $rec.Handler) && $t.Handlers == nil:", pkg: "internal/testkit/enginetest",
			run: "^TestMemoryStore$/^store_take$",
		},
		{
			rule: "TakeHandler", what: "an engine doesn't know its own operations by its function",
			in: "idem.resumeOptions", old: "$opt.Handlers[$i].Function = cmp.Or($opt.Handlers[$i].Function, $function)", new: `$opt.Handlers[$i].Function = cmp.Or($opt.Handlers[$i].Function, $function[:0])`, run: "^TestTicketsOnAPlainStore$",
		},
		{
			rule: "TakeTenant", what: "an operation is completed for another tenant",
			in: "internal/state.MayTake", old: "case $rec.Tenant != $t.Tenant:", new: "case $rec.Tenant != $t.Tenant && $t.Handlers == nil:", pkg: "internal/testkit/enginetest",
			run: "^TestMemoryStore$/^store_take$",
		},
		{
			rule: "TakeAck", what: "a take-over whose answer was lost is left alone",
			in: "idem.unattended.takeOnce", old: "return $rec, $ours($rec), nil", new: "return $rec, $rec == nil, nil", run: "^TestTakeOverWhoseAnswerWasLost$",
		},
		{
			rule: "TakeResent", what: "a take-over that the SDK has sent twice is another's",
			in: "idem.unattended.takeOnce", old: "return $rec, $taken || $ours($rec), nil", new: "return $rec, $taken, nil", run: "^TestTakeOverThatWasSentTwiceIsOurs$",
		},
		{
			rule: "TriesTake", what: "there is no ceiling",
			in: "idem.unattended.goOn", old: "case $rec.Tries > $a.opt.MaxTries:", new: "case $rec.Tries < 0:", run: "^TestTriesThatDieAreCounted$",
		},
		{
			rule: "OwnNonce", what: "all completers have one nonce",
			in: "idem.core.unattended", old: "$a.resumed = $pk, rand.Text(), true", new: `$a.resumed = $pk, rand.Text()[:0]+"completer", true`,
			run: "^(TestTicketIsGoodForWhatItSaw|TestTwoCompletersAreTwoAttempts)$",
		},
		{
			rule: "BumpOwner", what: "an operator writes under the nonce of the attempt that got stuck",
			in: "idem.attempt.send", old: "state.Stamp($c.next, $c.prev, $a.owner)",
			new: "state.Stamp($c.next, $c.prev, $c.prev.Owner)", run: "^TestLateWriteDoesNotFitAfterASettlement$",
		},
		{
			rule: "TakeDoubts", what: "giving up forgets that the holder may have called somebody",
			in: "idem.Engine.MarkStuck", old: "$taken, $err := $a.takeTicket($ctx, $rec)", new: "$taken, $err := $rec, error(nil)",
			run: "^TestGivingUpKeepsTheDoubt$",
		},
		{
			rule: "OpCond", what: "an operator settles what isn't stuck",
			in: "internal/state.Settleable", old: "$rec.State == store.Stuck || $s.Answer",
			new: "$rec.State != store.None || $s.Answer", pkg: "idem", run: "^TestOnlyWhatIsStuckIsSettled$",
		},
		{
			rule: "OpCond", what: "an operator answers what somebody holds",
			in: "internal/state.Abandoned", old: "return $rec.State == store.Open && !$rec.Lease.After($now) &&", new: "return $rec.State == store.Open &&", pkg: "idem", run: "^TestOnlyWhatIsStuckIsSettled$",
		},
		{
			rule: "OpCond", what: "an operator who was overtaken is told that it is done",
			in: "idem.core.decide", old: "case $moved && $known:", new: "case $known && !$moved:",
			run: "^TestTwoOperatorsDecideOnce$",
		},
		{
			rule: "OneDecision", what: "of two decisions that contradict each other one is carried out",
			in: "internal/state.Settled", old: "case $s.decisions() > 1:", new: "case $s.decisions() > 4:", pkg: "idem", run: "^TestSettlementIsOneDecision$",
		},
		{
			rule: "DecisionSeen", what: "a decision is carried out on what nobody has looked at",
			in: "idem.Engine.Settle", old: `if $s.Seen.Owner != "" {`, new: "if $s.Seen.Ver < 0 {",
			run: "^TestSettlementIsAboutWhatWasSeen$",
		},
		{
			rule: "DecisionStays", what: "nobody can tell who decided what",
			in: "idem.Engine.Settle", where: "func($rec *store.Record, $now time.Time)", old: "$next = state.Finished($next,",
			new: "$next = state.Finished($rec,", run: "^TestSettlementsStayInTheRecord$",
		},
		{
			rule: "SettlingStartsAnew", what: "the sweep undoes a settlement, for how long it had lain there before",
			in: "internal/state.Settled", old: "$r.Tries, $r.LastErr, $r.Run, $r.Blocked = store.Open, 0, \"\", Millis($now), false",
			new: "$r.Tries, $r.LastErr, $r.Blocked = store.Open, 0, \"\", false", pkg: "idem", run: "^TestSettlementsStayInTheRecord$",
		},
		{
			rule: "ResultShape", what: "people give a result that the program can't read",
			in: "internal/state.Settled", old: "if $err := shape.Check($call.Shape, $s.Result); $err != nil {", new: "if $err := shape.Check($call.Shape, $s.Result); $err != nil && $call == nil {",
			pkg: "idem", run: "^TestResultHasTheShapeThatTheProgramReads$",
		},
		{
			rule: "ResultShape", what: "a result is corrected after a call that used it may have begun",
			in: "internal/state.Decidable", old: "case $rec.Phases[$n-1].Intent || !$rec.Lease.IsZero() || len($rec.Doubts) > 0:", new: "case $rec.Phases[$n-1].Intent || !$rec.Lease.IsZero():",
			pkg: "idem", run: "^TestResultHasTheShapeThatTheProgramReads$",
		},
		{
			rule: "ResultShape", what: "a call that has begun doesn't say what people may have to give",
			in: "idem.phaseRun.begun", old: "Shape: shape.Of($p.result)", new: "Shape: shape.Of($p.result)[:0]", run: "^TestResultHasTheShapeThatTheProgramReads$",
		},
		{
			rule: "OwnNamespace", what: "a ticket reaches another application's records",
			in: "idem.core.unattended", old: "if !strings.HasPrefix($pk, $e.prefix) {", new: `if strings.HasPrefix($pk, "#") {`,
			run: "^TestTicketOfAnotherNamespaceIsRefused$",
		},
		{
			rule: "IntentNeedsOutcome", what: "an unknown outcome may be tried again unsettled",
			in: "internal/state.Settled", where: "$rec *store.Record", old: "case $begun: return nil, fmt.Errorf", new: "case $begun && $rec == nil: return nil, fmt.Errorf", pkg: "idem",
			run: "^TestNotIdempotent$/^unknown$",
		},
		{
			rule: "OperatorSees", what: "an operator changes a record that has moved since it was shown",
			in: "idem.core.decide", old: "if $seen != nil && ($rec == nil || $rec.Owner != $seen.Owner || $rec.Ver != $seen.Ver) {", new: "if $seen != nil && $rec == nil {", pkg: "idem", run: "^TestEndLease$",
		},
		{
			rule: "Decided", what: "a decision pushes another operator's out of a full list",
			in: "dynamo.update.decided", old: "$u.condition += item.HoldDecisions($prev, $u.args)", new: "", pkg: "dynamo", run: "^TestDecisionsOfTwoOperatorsStay$",
		},
		{
			rule: "EndLeaseDoubts", what: "the calls of an attempt whose lease was ended are not in doubt",
			in: "internal/state.LeaseEnded", old: "vanished(&$r, $rec)", new: "", pkg: "idem", run: "^TestEndLease$",
		},
		{
			rule: "ForgetAsks", what: "an operation is forgotten while an attempt works on it",
			in: "internal/state.Forgotten", old: "$rec.Lease.After($now) && !$accepted.Held:", new: "$rec.Lease.After($now) && !$accepted.Held && $accepted.Jobs == $accepted.Work && !$accepted.Jobs:", pkg: "idem", run: "^TestForget$",
		},
		{
			rule: "ForgetAsks", what: "undelivered jobs are forgotten",
			in: "internal/state.Forgotten", old: "case len($rec.Jobs) > 0 && !$accepted.Jobs:", new: "case len($rec.Jobs) > 99 && !$accepted.Jobs:", pkg: "idem", run: "^TestForget$",
		},
		{
			rule: "ForgetAsks", what: "committed work is forgotten",
			in: "internal/state.Forgotten", old: "case !$accepted.Work && (", new: "case !$accepted.Work && !$accepted.Held && (", pkg: "idem", run: "^TestForget$",
		},
		{
			rule: "ForgetAsks", what: "a finished operation is forgotten by the way",
			in: "internal/state.Forgotten", old: "case !$accepted.Work && (!$unfinished ||", new: "case !$accepted.Work && ($accepted.Work ||", pkg: "internal/state", run: "^TestForgettingNeedsWhatLostTells$",
		},
		{
			rule: "ForgetJobs", what: "jobs that a person gave up are sent",
			in: "internal/state.Forgotten", old: "$r.Tombstone, $r.Jobs = time.Time{}, Millis($now), time.Time{}, 0, nil", new: "$r.Tombstone, $r.Jobs = time.Time{}, Millis($now), time.Time{}, 0, $r.Jobs", pkg: "dynamo/stream",
			run: "^TestForgottenJobsAreNotSent$",
		},
		{
			rule: "ForgetJobs", what: "a job that was delivered meanwhile is said to be lost",
			in: "dynamo.droppedCondition", old: `" AND size(jobs) = :jobs"`, new: `" AND size(jobs) <= :jobs"`, pkg: "dynamo/stream", run: "^TestForgetSaysWhatIsLost$",
		},
		{
			rule: "ForgetJobs", what: "a job that is parked meanwhile leaves its wait behind",
			in: "dynamo.update.wait", old: "&& !state.DropsJobs($prev, $next)", new: "", pkg: "dynamo/stream", run: "^TestForgetSaysWhatIsLost$",
		},
		{
			rule: "ForgetJobs", what: "a store in memory loses jobs that are not those that were seen",
			in: "idem.MemoryStore.Commit", old: "&& state.DropsJobs($c.Prev, $c.Next) && !state.SameJobs($old, $c.Prev):", new: "&& state.DropsJobs($c.Prev, $c.Next) && $old == nil:", pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$",
		},
	}
}
