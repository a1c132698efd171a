package main

// phaseMutants break what holds phases together.
func phaseMutants() []mutant {
	const flow, commit, phase, tx = "idem/flow.go", "idem/flow_commit.go", "idem/phase.go", "idem/tx.go"
	return []mutant{
		{
			rule: "AdoptID", what: "derived keys come from the attempt's id",
			file: flow, old: "tx.id, tx.made, tx.repeats = f.rec.ID,", new: "tx.id, tx.made, tx.repeats = f.a.id,", run: "^TestRetryResumesAtTheRecoveryPoint$",
		},
		{
			rule: "AdoptOpID", what: "an operation's id is the attempt's",
			file: flow, old: "\tif f.rec != nil {\n\t\treturn f.rec.ID\n\t}\n\treturn f.a.id", new: "\treturn f.a.id", run: "^TestRetryKeepsTheOperationsID$",
		},
		{
			rule: "FlushBeforeForeign", what: "a call begins before the results it rests on are stored",
			file: flow, old: "outstanding := f.rec == nil || len(f.pending) > 0", new: "outstanding := f.rec == nil", run: "^TestForeignCommitsWhatIsPending$",
		},
		{
			rule: "ClaimBeforeForeign", what: "a call begins before the claim",
			file: flow, old: "outstanding := f.rec == nil || len(f.pending) > 0", new: "outstanding := len(f.pending) > 0", run: "^TestMergedClaimConsultsTheRecord$",
		},
		{
			rule: "IntentFirst", what: "the intent of a call is stored after it",
			file: flow, old: "\tif s.intent {\n\t\tif err := f.intend(",
			new: "\tif s.intent {\n\t\tfirst, firstErr := fn(ctx, f.tx(s))\n\t\tfn = func(context.Context, *Tx) ([]byte, error) { return first, firstErr }\n" +
				"\t\tif err := f.intend(",
			run: "^TestNotIdempotent$",
		},
		{
			rule: "IntentIsUnknown", what: "a call that was begun and never came back is made again",
			file: flow, old: "\tif begun {\n", new: "\tif begun && s.name == \"\" {\n", run: "^TestNotIdempotent$",
		},
		{
			rule: "UnknownIsStuck", what: "a call whose outcome is unknown is made again",
			file: flow, old: "case retry && txErr == nil:", new: "case (retry || err != nil && !responds) && txErr == nil:", run: "^TestNotIdempotent$",
		},
		{
			rule: "PoisonedPhase", what: "phases go on after one has failed",
			file: flow, old: "case f.err != nil:\n\t\treturn nil, false,", new: "case f.err != nil && s.name == \"\":\n\t\treturn nil, false,", run: "^TestFalseConditionCommitsNothing$",
		},
		{
			rule: "SwallowedError", what: "an answer that hides a failed phase is stored",
			file: "idem/engine.go", old: "failed == nil && a.opt.Stored(resp.Status)", new: "a.opt.Stored(resp.Status)", run: "^TestSwallowedPhaseErrorIsNotStored$",
		},
		{
			rule: "SwallowedError", what: "a client is told of success by an answer that hides a failed phase",
			file: "idem/engine.go", old: "if resp.Status < http.StatusBadRequest {", new: "if resp.Status < http.StatusContinue {", run: "^TestSwallowedPhaseErrorIsNotStored$",
		},
		{
			rule: "PhaseOrder", what: "any phase gets the result that is recorded at its place",
			file: flow, old: "if s.kind == last || p.Name != s.name {", new: "if s.kind == last {", run: "^TestPhasesOutOfOrderAreRefused$",
		},
		{
			rule: "PhaseOrder", what: "the finish may come before phases that are recorded",
			file: flow, old: "if s.kind == last || p.Name != s.name {", new: "if s.kind != last && p.Name != s.name {", run: "^TestPhasesOutOfOrderAreRefused$",
		},
		{
			rule: "PhaseOrder", what: "a name may be used twice",
			file: flow, old: "case s.kind != last && f.names[s.name]:", new: "case s.kind == last && f.names[s.name]:", run: "^Test(PhasesOutOfOrderAreRefused|MisusedPhasesAreRefused)$",
		},
		{
			rule: "PhaseOrder", what: "phases may be nested",
			file: flow, old: "\tcase f.busy:\n\t\treturn nil, false,", new: "\tcase f.busy && f.over:\n\t\treturn nil, false,", run: "^TestMisusedPhasesAreRefused$",
		},
		{
			rule: "Leftover", what: "a plain answer may come before phases that are recorded",
			file: commit, old: "\tif err := f.leftover(); err != nil {\n\t\treturn f.failed(err)", new: "\tif err := f.leftover(); err != nil && f.a == nil {\n\t\treturn f.failed(err)",
			run: "^TestPhasesOutOfOrderAreRefused$",
		},
		{
			rule: "IntentKind", what: "an Atomic passes over a call whose outcome is unknown",
			file: flow, old: "if p.Intent && s.kind != foreign {", new: "if p.Intent && s.kind == last {", run: "^TestIntentIsNotPassedByAnAtomic$",
		},
		{
			rule: "LeftBehind", what: "a phase that outlives its handler commits",
			file: commit, old: "\tif f.leftBehind() {\n\t\t// The attempt", new: "\tif f.leftBehind() && f.a == nil {\n\t\t// The attempt", run: "^TestPhaseThatOutlivesItsHandlerWritesNothing$",
		},
		{
			rule: "LeftBehind", what: "an answer is stored while a call is under way",
			file: "idem/engine.go", old: "if err == nil && f.leftBehind() {", new: "if err == nil && f.leftBehind() && f.a == nil {", run: "^TestNoAnswerLeavesWhileACallIsUnderWay$",
		},
		{
			rule: "StageBeforeIntent", what: "jobs are staged for a call that a human may have to settle",
			file: flow, old: "if len(f.loose) > 0 {\n\t\t// Whoever", new: "if len(f.loose) < 0 {\n\t\t// Whoever", run: "^TestStageBeforeANotIdempotentPhase$",
		},
		{
			rule: "StageOutsideOfPhases", what: "a phase that runs again stages twice",
			file: flow, old: "\tcase f.busy:\n\t\treturn f.failed(fmt.Errorf(\"%w: Stage while", new: "\tcase f.busy && f.over:\n\t\treturn f.failed(fmt.Errorf(\"%w: Stage while", run: "^TestStageInAnAtomicThatRunsAgain$",
		},
		{
			rule: "StageOnResume", what: "a resumed run stages the jobs of a committed phase again",
			file: flow, old: "\tf.loose = nil // committed with the phase\n", new: "", run: "^TestStagedJobsAreCommittedOnceWithStableNames$",
		},
		{
			rule: "IntentIsNoResult", what: "an intent counts as a phase that is through",
			file: commit, old: "ends := len(phases) > 0 && !phases[0].Intent", new: "ends := len(phases) > 0", run: "^TestHooksOfPhases$",
		},
		{
			rule: "JobLimit", what: "a record may have any number of jobs",
			file: flow, old: "if n > maxJobs {", new: "if n < 0 {", run: "^TestMisusedPhasesAreRefused$",
		},
		{
			rule: "JobLimit", what: "jobs that are in the record already don't count for its limit",
			file: flow, old: "\t\tn += len(f.rec.Jobs)\n", new: "\t\tn += 0 * len(f.rec.Jobs)\n", run: "^TestJobsInTheRecordCountForItsLimit$",
		},
		{
			rule: "SecondLook", what: "a call is made whose context has ended in its intent's commit",
			file: flow, old: "if err := f.alive(ctx, s); err != nil {\n\t\tif !s.intent {", new: "if err := f.alive(ctx, s); err != nil && !s.intent {\n\t\tif !s.intent {",
			run: "^TestContextThatEndsInTheIntentsCommit$",
		},
		{
			rule: "SecondLook", what: "an intent is left behind whose call wasn't made",
			file: flow, old: "if rerr := f.replaceIntent(ctx, nil); rerr != nil {\n\t\t\treturn nil, f.commitFailed(s, rerr)\n\t\t}\n\t\treturn nil, err\n\t}\n\tf.mu.Lock()",
			new: "return nil, err\n\t}\n\tf.mu.Lock()", run: "^TestContextThatEndsInTheIntentsCommit$",
		},
		{
			rule: "KeyReused", what: "one derived key serves two calls of a run",
			file: tx, old: "if slices.Contains(tx.calls, call) || ", new: "if ", run: "^TestReusedKeysAreRefused$",
		},
		{
			rule: "KeyReused", what: "a step that an earlier phase has used serves another call",
			file: tx, old: " || len(step) > 0 && tx.made[call] > 0 {", new: " {", run: "^TestReusedKeysAreRefused$",
		},
		{
			rule: "KeyParts", what: "derived keys of different services are the same",
			file: tx, old: "name := url.PathEscape(service)", new: "name := \"\"", run: "^TestOperationIDsAndDerivedKeys$",
		},
		{
			rule: "KeyParts", what: "a name with a slash in it is another call's",
			file: tx, old: "name := url.PathEscape(service)", new: "name := service", run: "^TestOperationIDsAndDerivedKeys$",
		},
		{
			rule: "KeyParts", what: "derived keys of the calls to one service are the same",
			file: tx, old: "made[name]+made[skipped]+1", new: "1", run: "^TestOperationIDsAndDerivedKeys$",
		},
		{
			rule: "KeyParts", what: "a call has the key of one whose outcome people told",
			file: tx, old: "made[name]+made[skipped]+1", new: "made[name]+1", run: "^TestSettlingACallThatTheProviderMayHaveForgotten$",
		},
		{
			rule: "KeyParts", what: "a phase's name is part of its derived keys",
			file: tx, old: "return derived([]string{tx.id, call})", new: "return derived([]string{tx.id, tx.phase, call})", run: "^TestRenamedForeignKeepsItsKey$",
		},
		{
			rule: "KeyParts", what: "an operation changes its keys with this package's version",
			file: tx, old: "if tx.made == nil {", new: "if tx.id == \"\" {", run: "^TestRecordsOfAnEarlierVersionKeepTheirKeys$",
		},
		{
			rule: "Classify", what: "a refusal of a key is taken for one of the call",
			file: "idem/outcome.go", old: "\tcase slices.ContainsFunc(codes, aboutKey):\n\t\treturn Unknown\n", new: "", run: "^TestClassifyAnswersAboutTheKey$",
		},
		{
			rule: "Classify", what: "credentials that are refused are taken for the end of an earlier call",
			file: "idem/outcome.go", old: "\t\thttp.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:", new: "\t\thttp.StatusProxyAuthRequired:", run: "^TestClassify$",
		},
		{
			rule: "Repeats", what: "a call that may have been made passes for a first one",
			file: flow, old: "f.rec.Calls, len(f.rec.Doubts) > 0", new: "f.rec.Calls, len(f.rec.Doubts) > 9", run: "^TestRepeats$",
		},
		{
			rule: "Memory", what: "a call that is stuck takes what is pending with it",
			file: commit, old: "slices.Concat(f.pending, begun), f.waiting, f.calls", new: "slices.Clone(begun), f.waiting, f.calls", run: "^TestSettlingACallThatTheProviderMayHaveForgotten$",
		},
		{
			rule: "Memory", what: "a renewed lease makes a call younger",
			file: "idem/state.go", old: "r.Ver, r.Lease = held.Ver+1, millis(lease)\n", new: "r.Ver, r.Lease, r.Run = held.Ver+1, millis(lease), millis(now)\n",
			run: "^TestDoubtCountsFromTheBeginOfTheAttempt$",
		},
		{
			rule: "Unrepeated", what: "an operation ends without a call that may have been made",
			file: flow, old: "\treturn f.unrepeated(\"the handler ended\")", new: "\treturn nil", run: "^TestChangesOfPhasesBetweenVersions$",
		},
		{
			rule: "Unrepeated", what: "a call without a key is made though one with a key may have been",
			file: flow, old: "\t\terr = f.unrepeated(", new: "\t\t_ = f.unrepeated(", run: "^TestChangesOfPhasesBetweenVersions$",
		},
		{
			rule: "Unrepeated", what: "an attempt that fails in a call doesn't say so",
			file: "idem/state.go", old: "held.tells); len(calls) > 0 {\n", new: "held.tells); len(calls) > 9 {\n", run: "^TestChangesOfPhasesBetweenVersions$",
		},
		{
			rule: "TellsOf", what: "a call is in doubt though its commit landed after all",
			file: "idem/state.go", old: "slices.DeleteFunc(slices.Clone(b.calls), held.tells)", new: "slices.Clone(b.calls)", run: "^TestRecordedCallIsInNoDoubt$",
		},
		{
			rule: "Sends", what: "something else is sent under the key of a call that may have been made",
			file: flow, old: "first != \"\" && first != hash", new: "first == hash && call == \"\"", run: "^TestSends$",
		},
		{
			rule: "Sends", what: "a call is compared with one that is recorded",
			file: flow, old: "sent[callName(tx.made, one.service, one.step)]", new: "sent[callName(nil, one.service, one.step)]", run: "^TestSends$",
		},
		{
			rule: "ResultFits", what: "a result that its type no longer holds comes back with holes in it",
			file: phase, old: "at := missing(raw, out); at != \"\"", new: "at := missing(raw, out); at == \"none\"", run: "^TestResultOfAnotherTypeIsRefusedWhereItLosesData$",
		},
		{
			rule: "CountCalls", what: "a resumed run begins to count its calls anew",
			file: "idem/state.go", old: "r.Calls = tally(held.Calls, calls)", new: "r.Calls = tally(held.Calls, nil)", run: "^TestResumedRunGoesOnCounting$",
		},
		{
			rule: "CountCalls", what: "the calls of a Deferred phase aren't counted",
			file: flow, old: "tx.made = tally(tx.made, f.calls)", new: "tx.made = tally(tx.made, nil)", run: "^TestDerivedKeysOfADeferredCall$",
		},
		{
			rule: "Memory", what: "a call is repeated that its provider may have forgotten",
			file: flow, old: "if f.rec == nil || f.a.opt.Now()", new: "if f.rec == nil || s.name != \"\" || f.a.opt.Now()", run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "a call is in doubt that was never made",
			file: "idem/state.go", old: "\tif !held.Lease.IsZero() {\n\t\t// Its holder", new: "\tif held.Ver > 0 {\n\t\t// Its holder", run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "a call that was made by a holder that never came back counts from its take-over",
			file: "idem/state.go", old: "r.doubt(with(held.Doubts, AnyCall), held.doubtSince())", new: "r.doubt(with(held.Doubts, AnyCall), now)", run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "each attempt begins to count a call's age anew",
			file: "idem/state.go", old: "if len(r.Doubts) > 0 {\n\t\treturn r.DoubtSince", new: "if len(r.Doubts) > 9 {\n\t\treturn r.DoubtSince", run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "the last hour of a provider's memory is relied on",
			file: phase, old: "return memory - min(time.Hour, memory/4)", new: "return memory", run: "^TestForHowLongACallIsRepeated$",
		},
		{
			rule: "Memory", what: "an operation that people let go on is stuck in the same call again",
			file: "idem/resume.go", old: "r.Phases = slices.Clone(rec.Phases[:n-1])\n\t\tr.doubt(nil, time.Time{})", new: "r.Phases = slices.Clone(rec.Phases[:n-1])",
			run: "^TestSettlingACallThatTheProviderMayHaveForgotten$",
		},
		{
			rule: "ResultWhole", what: "a result may lose what JSON doesn't see",
			file: "idem/roundtrip.go", old: "\t\tif hidden(f) {\n\t\t\tif !v.Field(i).IsZero() {", new: "\t\tif hidden(f) {\n\t\t\tif v.Field(i).IsZero() && false {",
			run: "^TestResultThatLosesDataIsRefused$",
		},
		{
			rule: "ResultWhole", what: "a marshaler counts that a value doesn't have",
			file: "idem/roundtrip.go", old: " || v.CanAddr() && is(", new: " || is(", run: "^TestResultThatLosesDataIsRefused$",
		},
		{
			rule: "ResultSurvives", what: "a result may be another one when it is resumed",
			file: phase, old: "if again, err := json.Marshal(back); err != nil || !bytes.Equal(raw, again) {", new: "if again, err := json.Marshal(back); err != nil || bytes.Equal(again, nil) {",
			run: "^TestResultThatChangesInTheRecordIsRefused$",
		},
		{
			rule: "DeferredWrites", what: "a Deferred phase loses its writes",
			file: flow, old: "case s.deferred && !responds && len(got.writes) > 0:", new: "case s.deferred && !responds && len(got.writes) < 0:", run: "^TestMisusedPhasesAreRefused$",
		},
		{
			rule: "AtomicRunsAgain", what: "a conflict fails a phase",
			file: flow, old: "if !errors.Is(err, ErrConflict) || ", new: "if err != nil || round == 0 || ", run: "^TestAtomicRunsAgainAfterAConflict$",
		},
		{
			rule: "ForeignRunsOnce", what: "a conflict repeats a call",
			file: flow, old: "rerun := s.kind != foreign", new: "rerun := s.kind != last", run: "^TestConflictSendsACallsCommitAgain$",
		},
	}
}
