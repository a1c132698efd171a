package main

// phaseMutants break what holds phases together.
func phaseMutants() []mutant {
	return []mutant{
		{
			rule: "AdoptID", what: "derived keys come from the attempt's id",
			in: "idem.progress.tx", where: "$id string", old: "$tx.id, $tx.made, $tx.repeats = $p.rec.ID,", new: "$tx.id, $tx.made, $tx.repeats = $id,",
			run: "^TestRetryResumesAtTheRecoveryPoint$",
		},
		{
			rule: "AdoptOpID", what: "an operation's id is the attempt's",
			in: "idem.progress.id", old: "if $rec := $p.record(); $rec != nil { return $rec.ID }; return $own", new: "return $own", run: "^TestRetryKeepsTheOperationsID$",
		},
		{
			rule: "FlushBeforeForeign", what: "a call begins before the results it rests on are stored",
			in: "idem.progress.before", old: "$outstanding = $p.rec == nil || len($p.pending) > 0", new: "$outstanding = $p.rec == nil",
			run: "^TestForeignCommitsWhatIsPending$",
		},
		{
			rule: "ClaimBeforeForeign", what: "a call begins before the claim",
			in: "idem.progress.before", old: "$outstanding = $p.rec == nil || len($p.pending) > 0 || $p.rec.Keep == store.KeepNothing", new: "$outstanding = len($p.pending) > 0 || $p.rec != nil && $p.rec.Keep == store.KeepNothing",
			run: "^TestMergedClaimConsultsTheRecord$",
		},
		{
			rule: "IntentFirst", what: "the intent of a call is stored after it",
			in: "idem.phaseRun.foreign", where: "$ctx context.Context, $fn func", old: "if $p.intent { if $err := $p.intend(",
			new: "if $p.intent { first, firstErr := $fn($ctx, $p.tx()); $fn = func(context.Context, *Tx) ([]byte, error) { return first, firstErr }; if $err := $p.intend(",
			run: "^TestNotIdempotent$",
		},
		{
			rule: "IntentIsUnknown", what: "a call that was begun and never came back is made again",
			in: "idem.phaseRun.foreign", where: "$p *phaseRun", old: "if $begun { return", new: `if $begun && $p.name == "" { return`, run: "^TestNotIdempotent$",
		},
		{
			rule: "UnknownIsStuck", what: "a call whose outcome is unknown is made again",
			in: "idem.phaseRun.endIntent", where: "$err error) ([]byte, error) { $got, $txErr := $tx.close(); $answer, $responds :=", old: "case $retry && $txErr == nil:",
			new: "case ($retry || $err != nil && !$responds) && $txErr == nil:", run: "^TestNotIdempotent$",
		},
		{
			rule: "PoisonedPhase", what: "phases go on after one has failed",
			in: "idem.gate.enter", where: "$s step", old: "case $f.err != nil: return nil, false,", new: `case $f.err != nil && $s.name == "": return nil, false,`,
			run: "^TestFalseConditionCommitsNothing$",
		},
		{
			rule: "SwallowedError", what: "an answer that hides a failed phase is stored",
			in: "idem.entry.once", old: "$failed == nil && $a.opt.Stored($resp.Status)", new: "$a.opt.Stored($resp.Status)", run: "^TestSwallowedPhaseErrorIsNotStored$",
		},
		{
			rule: "SwallowedError", what: "a client is told of success by an answer that hides a failed phase",
			in: "idem.entry.once", old: "if $resp.Status < http.StatusBadRequest {", new: "if $resp.Status < http.StatusContinue {",
			run: "^TestSwallowedPhaseErrorIsNotStored$",
		},
		{
			rule: "PhaseOrder", what: "any phase gets the result that is recorded at its place",
			in: "idem.progress.recall", old: "if $p.Name != $s.name {", new: "if $s.kind == last {", run: "^TestPhasesOutOfOrderAreRefused$",
		},
		{
			rule: "PhaseOrder", what: "the finish may come before phases that are recorded",
			in: "idem.progress.recall", old: "if $p.Name != $s.name {", new: "if $s.kind != last && $p.Name != $s.name {",
			run: "^TestPhasesOutOfOrderAreRefused$",
		},
		{
			rule: "PhaseOrder", what: "a name may be used twice",
			in: "idem.gate.enter", old: "case $f.names[$s.name]:", new: "case $s.kind == last && $f.names[$s.name]:",
			run: "^Test(PhasesOutOfOrderAreRefused|MisusedPhasesAreRefused)$",
		},
		{
			rule: "PhaseOrder", what: "phases may be nested",
			in: "idem.gate.enter", old: "case $f.busy: return nil, false,", new: "case $f.busy && $f.over: return nil, false,", run: "^TestMisusedPhasesAreRefused$",
		},
		{
			rule: "Leftover", what: "a plain answer may come before phases that are recorded",
			in: "idem.entry.once", old: "if $err = $f.leftover(&$f.log); $err != nil { $err = $f.fail($err)",
			new: "if $f.a == nil { $err = $f.fail($err)", run: "^TestPhasesOutOfOrderAreRefused$",
		},
		{
			rule: "IntentKind", what: "an Atomic passes over a call whose outcome is unknown",
			in: "idem.progress.recall", old: "if $p.Intent && $s.kind != foreign {", new: "if $p.Intent && $s.kind == last {", run: "^TestIntentIsNotPassedByAnAtomic$",
		},
		{
			rule: "LeftBehind", what: "a phase that outlives its handler commits",
			in: "idem.flow.write", old: "if $left, _ := $f.failure(); $left {", new: "if $left, _ := $f.failure(); $left && $f.a == nil {", run: "^TestPhaseThatOutlivesItsHandlerWritesNothing$",
		},
		{
			rule: "LeftBehind", what: "an answer is stored while a call is under way",
			in: "idem.entry.once", where: "$left, $failed := $f.failure()", old: "$err == nil && $left {", new: "$err == nil && $left && $f.a == nil {",
			run: "^TestNoAnswerLeavesWhileAPhaseRuns$",
		},
		{
			rule: "StageBeforeIntent", what: "jobs are staged for a call that a human may have to settle",
			in: "idem.phaseRun.intend", old: "if $p.hasLoose() {", new: "if $p.hasLoose() && $p.a == nil {", run: "^TestStageBeforeANotIdempotentPhase$",
		},
		{
			rule: "StageOutsideOfPhases", what: "a phase that runs again stages twice",
			in: "idem.gate.between", old: `case $g.busy: return $g.failed(fmt.Errorf("%w: Stage while a phase runs: use its Tx"`,
			new: `case $g.busy && $g.over: return $g.failed(fmt.Errorf("%w: Stage while a phase runs: use its Tx"`, run: "^TestStageInAnAtomicThatRunsAgain$",
		},
		{
			rule: "StageOnResume", what: "a resumed run stages the jobs of a committed phase again",
			in: "idem.progress.recall", old: "$p.passes()", new: "$p.passed++", run: "^TestStagedJobsAreCommittedOnceWithStableNames$",
		},
		{
			rule: "IntentIsNoResult", what: "an intent counts as a phase that is through",
			in: "idem.flow.commit", old: "$ends := len($phases) > 0 && !$phases[0].Intent", new: "$ends := len($phases) > 0", run: "^TestHooksOfPhases$",
		},
		{
			rule: "JobLimit", what: "a record may have any number of jobs",
			in: "idem.progress.staged", old: "$n > maxJobs {", new: "$n < 0 {", run: "^TestMisusedPhasesAreRefused$",
		},
		{
			rule: "JobLimit", what: "jobs that are in the record already don't count for its limit",
			in: "idem.attempt.jobsNow", old: "$now != nil { return len($now.Jobs)", new: "$now != nil { return 0 * len($now.Jobs)", run: "^TestJobsInTheRecordCountForItsLimit$",
		},
		{
			rule: "SecondLook", what: "a call is made whose context has ended in its intent's commit",
			in: "idem.phaseRun.foreign", old: "if $err := $p.alive($ctx); $err != nil { if !$p.intent {",
			new: "if $err := $p.alive($ctx); $err != nil && !$p.intent { if !$p.intent {", run: "^TestContextThatEndsInTheIntentsCommit$",
		},
		{
			rule: "SecondLook", what: "an intent is left behind whose call wasn't made",
			in:  "idem.phaseRun.foreign",
			old: "if $rerr := $p.replaceIntent($ctx, nil); $rerr != nil { return nil, $p.commitFailed($p.name, $rerr) }; return nil, $err }; $p.log.enter()",
			new: "return nil, $err }; $p.log.enter()", run: "^TestContextThatEndsInTheIntentsCommit$",
		},
		{
			rule: "KeyReused", what: "one derived key serves two calls of a run",
			in: "idem.Tx.Key", old: "if slices.Contains($tx.calls, $call) ||", new: "if", run: "^TestReusedKeysAreRefused$",
		},
		{
			rule: "KeyReused", what: "a step that an earlier phase has used serves another call",
			in: "idem.Tx.Key", old: "|| len($step) > 0 && $tx.made[$call] > 0 {", new: "{", run: "^TestReusedKeysAreRefused$",
		},
		{
			rule: "KeyParts", what: "derived keys of different services are the same",
			in: "idem.callName", old: "$name := url.PathEscape($service)", new: `$name := ""`, run: "^TestOperationIDsAndDerivedKeys$",
		},
		{
			rule: "KeyParts", what: "a name with a slash in it is another call's",
			in: "idem.callName", old: "$name := url.PathEscape($service)", new: "$name := $service", run: "^TestOperationIDsAndDerivedKeys$",
		},
		{
			rule: "KeyParts", what: "derived keys of the calls to one service are the same",
			in: "idem.callName", old: "$made[$name]+$made[state.Skipped]+1", new: "1", run: "^TestOperationIDsAndDerivedKeys$",
		},
		{
			rule: "KeyParts", what: "a call has the key of one whose outcome people told",
			in: "idem.callName", old: "$made[$name]+$made[state.Skipped]+1", new: "$made[$name]+1", run: "^TestSettlingACallThatTheProviderMayHaveForgotten$",
		},
		{
			rule: "KeyParts", what: "a phase's name is part of its derived keys",
			in: "idem.phaseRun.tx", old: "if $p.kind == foreign { $tx.called = $p.log.ask }", new: "$tx.id += $p.name; if $p.kind == foreign { $tx.called = $p.log.ask }",
			run: "^TestRenamedForeignKeepsItsKey$",
		},
		{
			rule: "Classify", what: "a refusal of a key is taken for one of the call",
			in: "idem/client.Classify", old: "case slices.ContainsFunc($codes, aboutKey): return Unknown", new: "", run: "^TestClassify$",
		},
		{
			rule: "Classify", what: "credentials that are refused are taken for the end of an earlier call",
			in: "idem/client.Classify", old: "http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:", new: "http.StatusProxyAuthRequired:",
			run: "^TestClassify$",
		},
		{
			rule: "Repeats", what: "a call that may have been made passes for a first one",
			in: "idem.progress.tx", old: "$f.rec.Calls, len($f.rec.Doubts) > 0", new: "$f.rec.Calls, len($f.rec.Doubts) > 9", run: "^TestRepeats$",
		},
		{
			rule: "Memory", what: "a call that is stuck takes what is pending with it",
			in: "idem.flow.markStuck", old: "$phases := slices.Concat($pending, $begun)", new: "$phases := slices.Concat($pending[:0], $begun)",
			run: "^TestSettlingACallThatTheProviderMayHaveForgotten$",
		},
		{
			rule: "Memory", what: "a renewed lease makes a call younger",
			in: "internal/state.renew", where: "$now, $lease time.Time", old: "$r.Lease = Millis($lease)",
			new: "$r.Lease, $r.Run = Millis($lease), Millis($now)", run: "^TestDoubtCountsFromTheBeginOfTheAttempt$",
		},
		{
			rule: "Unrepeated", what: "an operation ends without a call that may have been made",
			in: "idem.progress.leftover", old: `return $made.unrepeated($p.rec.Doubts, "the handler ended")`, new: "return nil", run: "^TestChangesOfPhasesBetweenVersions$",
		},
		{
			rule: "Unrepeated", what: "a call without a key is made though one with a key may have been",
			in: "idem.phaseRun.intend", old: "$err = $p.log.unrepeated(", new: "_ = $p.log.unrepeated(", run: "^TestChangesOfPhasesBetweenVersions$",
		},
		{
			rule: "RelDoubts", what: "an attempt that fails in a call doesn't say so",
			in: "internal/state.Released", old: "$recorded); len($calls) > 0 {",
			new: "$recorded); len($calls) > 9 {", pkg: "idem", run: "^TestChangesOfPhasesBetweenVersions$",
		},
		{
			rule: "TellsOf", what: "a call is in doubt though its commit landed after all",
			in: "internal/state.Released", old: "return tells($held, $call)",
			new: "return tells($held, $call) && false", pkg: "idem", run: "^TestRecordedCallIsInNoDoubt$",
		},
		{
			rule: "Sends", what: "something else is sent under the key of a call that may have been made",
			in: "idem.phaseRun.differs", where: "$call,", old: `$first != "" && $first != $hash`, new: `$first == $hash && $call == ""`, run: "^TestSends$",
		},
		{
			rule: "Sends", what: "a call is compared with one that is recorded",
			in: "idem.phaseRun.sends", old: "$sent[callName($tx.made, $one.service, $one.step)]", new: "$sent[callName(nil, $one.service, $one.step)]", run: "^TestSends$",
		},
		{
			rule: "ResultFits", what: "a result that its type no longer holds comes back with holes in it",
			in: "idem.phase", old: `$at := missing($raw, $out); $at != ""`, new: `$at := missing($raw, $out); $at == "none"`,
			run: "^TestResultOfAnotherTypeIsRefusedWhereItLosesData$",
		},
		{
			rule: "CountCalls", what: "a resumed run begins to count its calls anew",
			in: "internal/state.Advanced", old: "$r.Calls = Tally($held.Calls, $calls)", new: "$r.Calls = Tally($held.Calls, nil)", pkg: "idem", run: "^TestResumedRunGoesOnCounting$",
		},
		{
			rule: "CountCalls", what: "the calls of a Deferred phase aren't counted",
			in: "idem.progress.tx", old: "$tx.made = state.Tally($tx.made, $f.calls)", new: "$tx.made = state.Tally($tx.made, nil)", run: "^TestDerivedKeysOfADeferredCall$",
		},
		{
			rule: "Memory", what: "a call is repeated that its provider may have forgotten",
			in: "idem.phaseRun.forgotten", where: "$p *phaseRun", old: "if $rec == nil || $p.a.opt.Now()", new: `if $rec == nil || $p.name != "" || $p.a.opt.Now()`,
			run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "a call is in doubt that was never made",
			in: "internal/state.Taken", old: "if !$held.Lease.IsZero() {", new: "if $held.Ver > 0 {", pkg: "idem", run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "a call that was made by a holder that never came back counts from its take-over",
			in: "internal/state.vanished", old: "With($held.Doubts, $held.Mark), doubtSince($held))",
			new: "With($held.Doubts, $held.Mark), $r.Run)", pkg: "idem", run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "each attempt begins to count a call's age anew",
			in: "internal/state.doubtSince", old: "if len($r.Doubts) > 0 { return $r.DoubtSince", new: "if len($r.Doubts) > 9 { return $r.DoubtSince", pkg: "idem",
			run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "the last hour of a provider's memory is relied on",
			in: "idem.trusted", old: "return $memory - min(time.Hour, $memory/4)", new: "return $memory", run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "an operation that people let go on is stuck in the same call again",
			in: "internal/state.Settled", old: "$r.Phases = slices.Clone($rec.Phases[:$n-1]); doubt(&$r, nil, time.Time{})", new: "$r.Phases = slices.Clone($rec.Phases[:$n-1])", pkg: "idem",
			run: "^TestSettlingACallThatTheProviderMayHaveForgotten$",
		},
		{
			rule: "ResultWhole", what: "a result may lose what JSON doesn't see",
			in: "idem.alteredField", old: "if hidden($f) { if !$v.Field($i).IsZero() {", new: "if hidden($f) { if $v.Field($i).IsZero() && false {",
			run: "^TestResultThatLosesDataIsRefused$",
		},
		{
			rule: "ResultWhole", what: "a marshaler counts that a value doesn't have",
			in: "idem.ownJSON", old: "|| $v.CanAddr() && $is(", new: "|| $is(", run: "^TestResultThatLosesDataIsRefused$",
		},
		{
			rule: "ResultSurvives", what: "a result may be another one when it is resumed",
			in: "idem.encodeResult", old: "if $again, $err := json.Marshal($back); $err != nil || !bytes.Equal($raw, $again) {",
			new: "if $again, $err := json.Marshal($back); $err != nil || bytes.Equal($again, nil) {", run: "^TestResultThatChangesInTheRecordIsRefused$",
		},
		{
			rule: "DeferredWrites", what: "a Deferred phase loses its writes",
			in: "idem.phaseRun.outcome", old: "case $s.deferred && !$responds && len($got.writes) > 0:", new: "case $s.deferred && !$responds && len($got.writes) < 0:",
			run: "^TestMisusedPhasesAreRefused$",
		},
		{
			rule: "AtomicRunsAgain", what: "a conflict fails a phase",
			in: "idem.phaseRun.atomic", where: "$round := 0", old: "if !errors.Is($err, ErrConflict) ||", new: "if $err != nil || $round == 0 ||",
			run: "^TestAtomicRunsAgainAfterAConflict$",
		},
		{
			rule: "ForeignRunsOnce", what: "a conflict repeats a call",
			in: "idem.phaseRun.outcome", old: "$rerun := $s.kind != foreign", new: "$rerun := $s.kind != last", run: "^TestConflictSendsACallsCommitAgain$",
		},
	}
}
