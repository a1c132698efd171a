package main

// keyRowMutants and those below break rules that no other line breaks: first those about
// keys and requests.
func keyRowMutants() []mutant {
	const suite = "internal/testkit/enginetest"
	return []mutant{
		{
			rule: "ResultUTF8", what: "a raw message that an item's string can't hold is stored",
			in: "idem.encodeResult", old: "if !utf8.Valid($raw) {", new: "if !utf8.Valid($raw[:0]) {", run: "^TestResultThatIsNotUTF8IsRefused$",
		},
		{
			rule: "HopByHop", what: "a header of one connection is replayed",
			in: "idem.neverStored", old: `"Keep-Alive",`, new: "", run: "^TestHeadersOfAConnectionAreNotStored$",
		},
		{
			rule: "SecondWrap", what: "a test has two handlers without a name, which a table's store refuses",
			in: "idem.MemoryStore.AddUnnamed", old: "return $m.unnamed.Add($among)", new: "return 0 * $m.unnamed.Add($among)", pkg: "dynamo",
			run: "^TestTwoEnginesWithTheSameKeysOnOneStore$",
		},
		{
			rule: "NoBatches", what: "a role that lacks batches on purpose raises the alarm on denied calls",
			in: "dynamo.watched.failed", old: `strings.HasPrefix($c.Op, "Batch") && accessDenied($err)`, new: `strings.HasPrefix($c.Op, "Batch") && false && accessDenied($err)`, run: "^TestBatchesOfCompanions$",
		},
		{
			rule: "MetricsLevel", what: "a function that logs warnings only has no metrics",
			in: "lambda/metrics.line.one", old: "`]}]},\"level\":\"`+level+`\",\"timestamp\":\"`", new: "`]}]},\"timestamp\":\"`", run: "^TestLinesPassAFilterOfWarnings$",
		},
		{
			rule: "PlainCrash", what: "a plain request that died is an abandoned operation until it is forgotten",
			in: "internal/state.Reasons", old: `"abandoned: will be forgotten", nil, ""`, new: `"abandoned: will be forgotten", nil, "Abandoned"`, run: "^TestReasonsThatAreCounted$",
		},
		{
			rule: "ForgedIdentity", what: "a load balancer's header names the caller",
			in: "lambda.albRequest", old: "$req.Route = anyRoute($req.Method)",
			new: `$req.Route, $req.Identity = anyRoute($req.Method), idem.Identity{Kind: "oidc", Subject: $req.Header.Get("X-Amzn-Oidc-Identity")}`,
			run: "^TestBadInput$/^33_forged_identity$",
		},
		{
			rule: "LocalHost", what: "a name that was bound anew to this machine reaches a local server",
			in: "internal/base/loopback.Guard.check", old: "!slices.Contains($g.hosts, strings.ToLower($r.Host))", new: "len($g.hosts) < 0 && slices.Contains($g.hosts, strings.ToLower($r.Host))",
			run: "^TestGuard$",
		},
		{
			rule: "LocalOrigin", what: "another origin's page reaches a local server",
			in: "internal/base/loopback.Guard.check", old: `$origins[0] != "http://"+$r.Host`, new: `$origins[0] == ""`, run: "^TestGuard$",
		},
		{
			rule: "LocalSite", what: "an image of another site is a page's link",
			in: "internal/base/loopback.Guard.check", old: `$r.Header.Get("Sec-Fetch-Mode") == "navigate"`, new: `$r.Header.Get("Sec-Fetch-Mode") != ""`, run: "^TestGuard$",
		},
		{
			rule: "JarSum", what: "a jar with other contents is run",
			in: "internal/servers.checkSums", old: "if $got != $want {", new: `if $got == "" {`, run: "^TestInstallRefusesWhatIsNotPinned$",
		},
		{
			rule: "KeyAnyCase", what: "a key's header is found in one spelling only",
			in: "idem.headerValues", old: "len($n) == len($name) && strings.EqualFold($n, $name)", new: "$n == strings.ToLower($name)",
			pkg: "lambda", run: "^TestBadInput$/^any_case$",
		},
		{
			rule: "KeyRequired", what: "a request without a key passes",
			in: "idem.core.keyless", old: `case !$generates || $r.Redelivered: return false, &Error{Op: "key", Err: ErrKeyMissing}`, new: "case !$generates || $r.Redelivered: return false, nil",
			pkg: "lambda", run: "^TestLifeOfAKey$",
		},
		{
			rule: "KeyMade", what: "all requests without a key get the same",
			in: "idem.core.keyless", old: "$r.Key = rand.Text()", new: "$r.Key = rand.Text()[:0]", pkg: suite, run: "^TestMemoryStore$/^engine/^A5:_a_missing_key_is_made",
		},
		{
			rule: "KeyOptional", what: "a key is required where it is optional",
			in: "idem.Options.keyOptional", old: "$o.Key == KeyOptional ||", new: "", pkg: "lambda", run: "^TestLifeOfAKey$",
		},
		{
			rule: "KeyLength", what: "a key of any length is taken",
			in: "idem.checkKey", old: "case len($key) > $maxLen:", new: "case len($key) > 100*$maxLen:", pkg: "lambda", run: "^TestBadInput$/^key_too_long$",
		},
		{
			rule: "KeyOpaque", what: "a key that reads null is none",
			in: "idem.parseKey", old: `$key = strings.Trim($values[0], " \t")`, new: `$key = strings.TrimSuffix(strings.Trim($values[0], " \t"), "null")`,
			pkg: suite, run: "^TestMemoryStore$/^engine/^P23:_keys_that_look_like_nothing",
		},
		{
			rule: "KeyShort", what: "a key below the least length is taken",
			in: "idem.checkKey", old: "case len($key) < $minLen:", new: "case len($key) < 0:", run: "^TestParseKey$",
		},
		{
			rule: "KeyMethods", what: "the engine acts on a GET",
			in: "idem.contract.key", old: "$e.opt.Disabled || !$e.methods[$r.Method]", new: "$e.opt.Disabled", run: "^TestPresetStripe$/^GET_with_a_key$",
		},
		{
			rule: "KeyMethods", what: "a DELETE with a key runs twice",
			in: "idem.Stripe", old: "$o.Methods = []string{http.MethodPost, http.MethodDelete}", new: "$o.Methods = []string{http.MethodPost}", run: "^TestPresetStripe$/^other_method$",
		},
		{
			rule: "FormKey", what: "of two keys in a form the first counts",
			in: "idem.FormKey", old: "case 1: return $values[0], nil", new: "case 1, 2: return $values[0], nil", run: "^TestFormKey$",
		},
		{
			rule: "ScopeOfCaller", what: "all verified callers share their keys",
			in: "internal/base/scope.Append", old: "return append($b, $caller.Subject...)", new: "return $b", pkg: "lambda", run: "^TestA08TwoUsers$",
		},
		{
			rule: "ScopeOfRoute", what: "a key of another route is the same key where routes have their own",
			in: "idem.naming.partitionKey", where: "$b, $text []byte, $r *Request", old: "case $by.path || $by.route:", new: `case $by.path || $by.route && $r.Route == "":`, pkg: "lambda", run: "^TestKeyOnAnotherRoute$",
		},
		{
			rule: "FingerprintParts", what: "the method isn't compared",
			in: "idem.Fingerprint.digest", old: "if !$f.SkipMethod {", new: "if $f.SkipMethod {", run: "^TestFingerprintParts$",
		},
		{
			rule: "FingerprintParts", what: "a chosen header isn't compared",
			in: "idem.Fingerprint.digest", old: `appendTagged($b, 'h', strings.Join(headerValues($r.Header, $name), ","))`, new: `appendTagged($b, 'h', $name)`,
			pkg: suite, run: "^TestMemoryStore$/^engine/^A15:_a_header_that_was_chosen",
		},
		{
			rule: "FingerprintNever", what: "a token may be a part of the fingerprint",
			in: "idem.neverFingerprinted", old: `"Authorization", "Cookie",`, new: `"Cookie",`, run: "^TestNewPanicsOnWhatCantWork$/^R17",
		},
		{
			rule: "MismatchAfter", what: "another request gets the answer of the first once that has ended",
			in: "internal/state.Judge", where: "$held *store.Record", old: "case !$same:", new: "case !$same && $held.State != store.Done:",
			pkg: "lambda", run: "^TestA03SameKeyOtherRequest$",
		},
		{
			rule: "FingerprintParts", what: "the path isn't compared",
			in: "idem.Fingerprint.digest", old: "if !$f.SkipPath {", new: "if $f.SkipPath {", pkg: "lambda", run: "^TestKeyOnAnotherRoute$",
		},
		{
			rule: "MismatchIsNew", what: "another request is none of its own where it has to be",
			in: "idem.subject.find", old: "$more = []string{string($digest[:])}", new: `$more = []string{""}`, run: "^TestR22MismatchIsNew$",
		},
	}
}

// answerRowMutants break what a client is told, and what is stored.
func answerRowMutants() []mutant {
	const suite = "internal/testkit/enginetest"
	return []mutant{
		{
			rule: "OneRuns", what: "each claimer of a key that nobody has finished runs",
			in: "idem.MemoryStore.Claim", old: "$old != nil && !$free && !unchanged($old, $c.Seen) {",
			new: "$old != nil && $old.Response != nil && !$free && !unchanged($old, $c.Seen) {", pkg: "lambda", run: "^TestA09HundredAtOnce$",
		},
		{
			rule: "InFlightStatus", what: "a client isn't told that its request is under way",
			in: "idem.problems", old: `Status: 409, Code: "idempotency_in_flight"`, new: `Status: 425, Code: "idempotency_in_flight"`, run: "^TestPresetIETF$|^TestPresetStripe$/^in_flight$",
		},
		{
			rule: "StripeInFlight", what: "Stripe's clients are told another code of a request under way",
			in: "idem.stripeJSON", old: `Code: "idempotency_key_in_use"`, new: `Code: "in_use"`, run: "^TestPresetStripe$/^in_flight$",
		},
		{
			rule: "Waits", what: "who wants to wait for an answer is refused",
			in: "idem.attempt.patiently", old: "$a.opt.InFlight == InFlightWait", new: "$a.opt.InFlight > InFlightWait", run: "^TestWaitForTheOtherAttempt$",
		},
		{
			rule: "ReplayMarked", what: "a first answer is marked as a replay",
			in: "idem.Result.mark", old: "if $r.Replayed {", new: "if $r.Replayed || !$r.Expires.IsZero() {", run: "^TestMiddleware$",
		},
		{
			rule: "StoredByDefault", what: "a declined card is asked again",
			in: "idem.DefaultStored", old: "return $status < http.StatusInternalServerError", new: "return $status < http.StatusBadRequest", pkg: "lambda", run: "^TestLifeOfAKey$",
		},
		{
			rule: "StoredByProgram", what: "the program's own policy doesn't count",
			in: "idem.entry.once", old: "$failed == nil && $a.opt.Stored($resp.Status)", new: "$failed == nil && DefaultStored($resp.Status)", pkg: suite, run: "^TestMemoryStore$/^engine/^P42",
		},
		{
			rule: "StoredByDefault", what: "a request that was refused as wrong keeps its key",
			in: "idem.DefaultStored", old: "case http.StatusBadRequest, http.StatusUnauthorized,", new: "case http.StatusUnauthorized,", run: "^TestWhatIsStored$",
		},
		{
			rule: "StripeStored", what: "a server error is replayed by Stripe's newer contract",
			in: "idem.Stripe", old: "storedBy(false,", new: "storedBy(true,", run: "^TestPresetStripe$",
		},
		{
			rule: "StripeStored", what: "a client that was told to slow down hears so for ever",
			in: "idem.Stripe", old: "http.StatusConflict, http.StatusTooManyRequests)", new: "http.StatusConflict)", run: "^TestPresetStripe$/^after_a_429$",
		},
		{
			rule: "RefusedIsFree", what: "a request that its handler refuses keeps its key",
			in: "idem.flow.release", old: "$b.Refused, $b.Why = $resp.Status/100 == 4, notStored($resp.Status)", new: `$b.Calls, $b.Why = []string{"refused"}, notStored($resp.Status)`,
			pkg: "lambda", run: "^TestA14RefusedRequestKeepsItsKeyFree$",
		},
		{
			rule: "HandlerError", what: "a handler's error is an answer of 200",
			in: "idem.failed", old: "Status: 500,", new: "Status: 200,", pkg: "lambda", run: "^TestLifeOfAKey$",
		},
		{
			rule: "StripeRetention", what: "a key of Stripe's first contract is forgotten an hour early",
			in: "idem.StripeV1", old: "24 * time.Hour", new: "23 * time.Hour", run: "^TestPresetStripeV1$/^new$",
		},
		{
			rule: "RetryWindow", what: "clients may retry for longer than their keys are kept",
			in: "idem.Options.validate", old: "$o.Retention >= $o.RetryWindow && $o.RetryWindow >= 0", new: "$o.RetryWindow >= 0", run: "^TestNewPanicsOnWhatCantWork$/^R84_clients_retry_for_longer$",
		},
		{
			rule: "Observes", what: "an observed request isn't reported",
			in: "idem.core.observed", old: "$e.attemptAt($r).tell($ctx, evObserved, nil, $err)", new: "", run: "^TestObserveExecutesAndCounts$",
		},
		{
			rule: "LostAnswer", what: "a claim whose acknowledgement was lost is taken for another's",
			in: "internal/state.Judge", where: "$held *store.Record", old: "case $held.Owner == $me && $held.Ver == 1 && $held.State != store.Stuck: return Own",
			new: "case $held.Owner == $me && $held.Ver == 1 && $held.State != store.Stuck: return InFlight", pkg: "dynamo", run: "^TestLostAnswers$",
		},
		{
			rule: "StripeNoRetry", what: "Stripe's clients repeat a stored error",
			in: "idem.stripeHeaders", old: "if $r.Status >= http.StatusBadRequest {", new: "if $r.Status >= 600 {", run: "^TestPresetStripe$",
		},
		{
			rule: "UnstoredIsTold", what: "an answer that could not be stored looks like any other",
			in: "idem.flow.conclude", old: "return Result{Response: $resp, Unstored: true}, nil", new: "return Result{Response: $resp}, nil", pkg: "dynamo", run: "^TestFinishFailsForGood$",
		},
		{
			rule: "ClientGone", what: "a client that goes away stops the writes of its request",
			in: "idem.clock.within", old: "context.WithDeadline(context.WithoutCancel($ctx), $until)", new: "context.WithDeadline($ctx, $until)", run: "^TestMiddlewareClientGoesAway$",
		},
	}
}

// workRowMutants break phases, jobs and what finishes without the client.
func workRowMutants() []mutant {
	const suite = "internal/testkit/enginetest"
	return []mutant{
		{
			rule: "DefaultLease", what: "without a deadline a lease has no length",
			in: "idem.clock.arrives", old: "$deadline = $now.Add($a.opt.Lease)", new: "$deadline = $now.Add(2 * $a.opt.Lease)", pkg: suite, run: "^TestMemoryStore$/^engine/^P11",
		},
		{
			rule: "ErrorUnlocks", what: "a failed attempt keeps its lease",
			in: "internal/state.Released", where: "$r := *$held", old: "$r.Lease, $r.Run = time.Time{}, Millis($now)", new: "$r.Run = Millis($now)", pkg: suite, run: "^TestMemoryStore$/^engine/^P12:_a_handler's_error_comes_through",
		},
		{
			rule: "Recalls", what: "a recorded phase runs again",
			in: "idem.progress.recall", where: "$s step", old: "if $f.rec == nil || $f.passed >= len($f.rec.Phases) {", new: `if $f.rec == nil || $f.passed >= len($f.rec.Phases) || $s.kind == atomically {`,
			run: "^TestRetryResumesAtTheRecoveryPoint$",
		},
		{
			rule: "Recalls", what: "a recorded phase has no result",
			in: "idem.progress.recall", old: "return slices.Clone($p.Result), true, nil", new: "return nil, true, nil", run: "^TestRetryResumesAtTheRecoveryPoint$",
		},
		{
			rule: "AttemptsTime", what: "a later attempt has the first one's time",
			in: "internal/state.Taken", where: "$r := *$held", old: "$r.Run = Millis($now)", new: "", pkg: "idem", run: "^TestEachAttemptNotesItsTime$",
		},
		{
			rule: "PhaseWrites", what: "a phase commits without its writes",
			in: "idem.flow.commit", old: "}, $got.writes, $rerun)", new: "}, nil, $rerun)", run: "^TestPhasesCommitOnceAndReplay$",
		},
		{
			rule: "DeferredResult", what: "a deferred result is in no commit",
			in: "idem.flow.finish", old: "$phases, _, _ := $f.next()", new: "$phases, _, _ := $f.next(); $phases = nil", run: "^TestDeferredAtomicCommitsWithTheNextPhase$",
		},
		{
			rule: "ResponseEnds", what: "a response in a phase commits the phase only",
			in: "idem.phaseRun.outcome", where: "$tx *Tx, $raw []byte", old: "$ferr := $p.finish($ctx, $resp, $got.writes, $got.jobs, $rerun); $ferr != nil",
			new: "$ferr := $p.commit($ctx, []store.Phase{{Name: $p.name, Result: $raw}}, $got, $rerun); $resp.Status > 0 && $ferr != nil", run: "^TestRespondInAPhaseIsStored$",
		},
		{
			rule: "PhasesTold", what: "a phase's commit isn't told",
			in: "idem.flow.committed", old: "if $p.Intent {", new: "if !$p.Intent {", run: "^TestHooksOfPhases$",
		},
		{
			rule: "FencedWorker", what: "a worker that wakes up after its lease commits",
			in: "idem.MemoryStore.Commit", old: "case $old.Owner != $c.Prev.Owner || $old.Ver != $c.Prev.Ver:", new: "case $old.Owner != $c.Prev.Owner && $old.Ver == $c.Prev.Ver:",
			run: "^TestPhasesFenceAWorkerThatWakesUp$",
		},
		{
			rule: "Remembers", what: "a key is sent after its provider may have forgotten it",
			in: "idem.phaseRun.forgotten", old: "$p.a.opt.Now().Sub($rec.DoubtSince) < $p.memory", new: "$p.memory > 0", run: "^TestKeyThatTheProviderMayHaveForgottenIsNotSent$",
		},
		{
			rule: "AbandonedOnly", what: "a completer takes what is finished",
			in: "internal/state.Completable", old: "$r.State == store.Open && $r.Keep == store.KeepOpen && $r.Input != nil", new: "$r.State != store.None",
			pkg: "dynamo/stream", run: "^TestA23CompleterTouchesNothingElse$",
		},
		{
			rule: "Grace", what: "a completer doesn't wait for the client",
			in: "internal/state.Due", old: "return $seen.Add(BackOff($grace, $r.Tries))", new: "return $seen", pkg: "dynamo/stream", run: "^TestA23CompleterTouchesNothingElse$",
		},
		{
			rule: "CompleterAnswers", what: "a completer's answer isn't the handler's",
			in: "lambda.Handler.again", old: "return $h.adapter.Response($own)", new: "return idem.Response{Status: 204}, nil", run: "^TestA22CompleterResumesThroughTheEnvelope$",
		},
		{
			rule: "AbortedJob", what: "a phase that has failed stages its jobs",
			in: "idem.phaseRun.outcome", where: "$got, $txErr := $tx.close(); $f.a.traced", old: "case $err != nil && !$responds:",
			new: "case $err != nil && !$responds && len($got.jobs) == 0:", pkg: "dynamo/stream", run: "^TestA20AbortedPhaseStagesNothing$",
		},
		{
			rule: "AckOfNothing", what: "an acknowledgement of no job is sent",
			in: "dynamo/stream.jobWriter.acknowledge", old: "if len($names) == 0 {", new: "if len($names) < 0 {", run: "^TestAckOfNothingIsNoCall$", refused: true,
		},
		{
			rule: "SweepPace", what: "a sweep reads as fast as it can",
			in: "dynamo/stream.scanner.each", old: "case <-$pace.C:", new: "case <-$pace.C: default:", run: "^TestSweepIsPaced$",
		},
		{
			rule: "BlockedWaits", what: "an operation that its program refuses waits for nobody",
			in: "internal/state.Waits", old: "return ReasonBlocked, $since", new: "return NoReason, $since", pkg: "dynamo/stream", run: "^TestBlockedIsListedAtOnce$",
		},
		{
			rule: "ClaimIsOneCall", what: "the record is read before each claim",
			in: "idem.before.enters", old: "if $a.req.ReadFirst ||", new: "if !$a.req.ReadFirst ||", pkg: "dynamo", run: "^TestCallsPerRequest$",
		},
		{
			rule: "ClaimFirst", what: "the handler runs before its claim",
			in: "idem.entry.proceed", old: "if $e.opt.MergeClaim {", new: "if !$e.opt.MergeClaim {", pkg: "dynamo", run: "^TestCallsPerRequest$",
		},
		{
			rule: "ForeignCommits", what: "a call's result isn't committed",
			in: "idem.phaseRun.outcome", where: "$tx *Tx, $raw []byte", old: "case $p.deferred || $p.joins && len($got.writes) == 0:", new: "case $p.deferred || $p.kind == foreign:", pkg: "dynamo", run: "^TestCallsPerPhase$",
		},
		{
			rule: "FinishIsOneCall", what: "a handler with nothing but a Finish claims first",
			in: "idem.Finish", old: "step{kind: last}", new: `step{kind: foreign, name: "finish"}`, pkg: "dynamo", run: "^TestCallsPerPhase$",
		},
		{
			rule: "ReplayIsNoRun", what: "the handler runs again after its answer",
			in: "internal/state.Judge", where: "$held *store.Record", old: "case $held.State == store.Done: return Replay", new: "case $held.State == store.Done: return TakeOver",
			pkg: "lambda", run: "^TestA02SameRequestAgain$",
		},
		{
			rule: "SweptCounted", what: "of what is abandoned one reason only is counted",
			in: "lambda/metrics.Metrics.swept", old: "$l.count($reason.Metric, float64($r.ByReason[$reason.Reason].Count))",
			new: "delete($l.values, $reason.Metric); $l.count($reason.Metric, float64($r.ByReason[$reason.Reason].Count))", run: "^TestSweptCountsWhatWasFound$",
		},
		{
			rule: "TimeToLive", what: "TTL looks at another attribute",
			in: "dynamo.TimeToLiveInput", old: "aws.String(item.AttrExpires)", new: `aws.String("expires")`, run: "^TestTemplateDefinesTheSameTable$",
		},
		{
			rule: "OneClaims", what: "a live record is claimed by another owner",
			in: "dynamo.claimCondition", old: `"attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`, new: `"attribute_not_exists(pk) OR attribute_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`,
			run: "^TestOneExecutionPerKey$",
		},
	}
}

// outerRowMutants break the client, the tests for users and Rocket Rides.
func outerRowMutants() []mutant {
	return []mutant{
		{
			rule: "ClientKey", what: "a key is no UUID of version 4",
			in: "idem/client.NewKey", old: "$u[6]&0x0f | 4<<4", new: "$u[6]&0x0f | 1<<4", run: "^TestKeys$",
		},
		{
			rule: "ClientRetries", what: "a request without an answer isn't repeated",
			in: "idem/client.operation.retriable", old: "case $err != nil: return reasonNetwork, true", new: "case $err != nil: return reasonNetwork, false", run: "^TestOutcomes$",
		},
		{
			rule: "CrashesEverywhere", what: "a user's handler is crashed at its first calls only",
			in: "idem/idemtest.CrashEverywhere", old: "$res.Replayed, $err", new: "true, $err", run: "^TestCrashEverywhereFinds$",
		},
		{
			rule: "RideInput", what: "a ride begins beyond the pole",
			in: "examples/rides.parse", old: `{"origin_lat", $in.OriginLat, 90}`, new: `{"origin_lat", $in.OriginLat, 900}`, run: "^TestBookingsThatAreRefused$",
		},
		{
			rule: "RideRecords", what: "a ride isn't its user's",
			in: "examples/rides.newRide", old: "User: $user.Email,", new: "", run: "^TestA01NewRide$",
		},
		{
			rule: "RideCharge", what: "a ride is stored without its charge",
			in: "examples/rides.App.create", old: "$paid.ChargeID = $charge.ID", new: "_ = $charge", run: "^TestA01NewRide$",
		},
		{
			rule: "RideAnswer", what: "a booking is answered by 200",
			in: "examples/rides.booked", old: "http.StatusCreated", new: "http.StatusOK", run: "^TestA01NewRide$",
		},
		{
			rule: "RideRaise", what: "a retry without raise_error is another request",
			in: "examples/rides.adapter", old: "$ev.RawQueryString = withoutParameter($ev.RawQueryString, raiseError)", new: "", run: "^TestRaiseErrorIsNotStored$",
		},
		{
			rule: "RideAudit", what: "an audit record doesn't say where the request came from",
			in: "examples/rides.Ride.created", old: "OriginIP: $originIP,", new: "", run: "^TestAuditRecord$",
		},
		{
			rule: "RideReceipt", what: "nobody gets a receipt",
			in: "examples/rides.App.create", old: "$tx.Stage(idem.NewJob(ReceiptJob, Receipt{RideID: $paid.ID, To: $paid.User, Amount: $order.Amount}))", new: "", run: "^TestEachReceiptIsSentOnce$",
		},
		{
			rule: "RideKey", what: "a charge goes without a key",
			in: "examples/rides.App.create", old: `$tx.Key("payments")`, new: `""`, run: "^TestA12ProviderDown$",
		},
	}
}
