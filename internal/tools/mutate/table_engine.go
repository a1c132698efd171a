package main

// engineMutants break how an attempt claims, writes and withdraws.
func engineMutants() []mutant {
	const claim, engine, finish, commit = "idem/claim.go", "idem/engine.go", "idem/finish.go", "idem/flow_commit.go"
	return []mutant{
		{
			rule: "OwnNonce", what: "all attempts of a process have one nonce",
			file: engine, old: "owner: rand.Text(), id: rand.Text(), digest: digest,", new: "owner: \"process\", id: rand.Text(), digest: digest,",
			pkg: "idem/idemtest", run: "^TestMemoryStore$/^engine_(in-flight|take-over)$",
		},
		{
			rule: "RFTrust", what: "read-first believes an old read whatever it shows",
			file: claim, old: "if v, err := a.judge(rec); err == nil && v == replay {", new: "if v, err := a.judge(rec); err == nil && v != again && v != takeOver {",
			pkg: "idem/idemtest", run: "^TestMemoryStore$/^engine_cache$",
		},
		{
			rule: "CacheDone", what: "the cache takes records that aren't finished",
			file: "idem/cache.go", old: "r.State != Done || ", new: "", run: "^TestCacheTakesFinishedRecordsOnly$",
		},
		{
			rule: "CacheBound", what: "the cache holds what no answer needs",
			file: "idem/cache.go", old: "answer.Phases, answer.Jobs, answer.Input, answer.LastErr = nil, nil, nil, \"\"\n", new: "", run: "^TestCacheBoundsMemory$",
		},
		{
			rule: "FailOpenSeen", what: "a request runs unprotected though its record was seen",
			file: "idem/engine.go", old: "case e.opt.FailOpen && !a.seen && unreachable(err):", new: "case e.opt.FailOpen && unreachable(err):",
			run: "^TestFailOpenNotOverARecordThatWasSeen$",
		},
		{
			rule: "MaxClaim", what: "a claim is sent again however long the sandbox was frozen",
			file: claim, old: "if now.Round(0).Sub(begun) > maxClaim {", new: "if now.Before(begun) {", run: "^TestThawedAfterALifetime$",
		},
		{
			rule: "MinRetention", what: "a record may expire before a late packet of its claim",
			file: "idem/options.go", old: "check(o.Retention >= MinRetention,", new: "check(o.Retention > 0,", run: "^TestNewPanicsOnWhatCantWork$",
		},
		{
			rule: "FencedStops", what: "an overtaken attempt takes its write for landed",
			file: claim, old: "return held, land(held, c.prev, c.next, a.owner), nil\n\tcase !errors.Is", new: "return held, landed, nil\n\tcase !errors.Is",
			pkg: "idem/idemtest", run: "^TestMemoryStore$/^engine_take-over$",
		},
		{
			rule: "UnknownIsRead", what: "an unknown outcome is taken for not applied",
			file: claim, old: "return now, land(now, c.prev, c.next, a.owner), nil", new: "return now, notYet, nil",
			run: "^TestOneReadTellsWhereEveryAnswerIsLost$",
		},
		{
			rule: "Adopt", what: "after a lost answer the run at hand counts, not what was stored",
			file: commit, old: "case l == landed:\n\t\tf.set(held)\n\t\treturn held, nil", new: "case l == landed:\n\t\tf.set(next)\n\t\treturn next, nil",
			run: "^TestWhatWasStoredCounts$",
		},
		{
			rule: "Adopt", what: "after a lost merged claim the run at hand counts",
			file: commit, old: "\tcase v == own:\n\t\tf.set(held)\n",
			new: "\tcase v == own:\n\t\tif mine := build(a.fresh(a.opt.Now())); sameShape(held, mine) {\n\t\t\theld = mine\n\t\t}\n\t\tf.set(held)\n",
			run: "^TestWhatWasStoredCounts$",
		},
		{
			rule: "Adopt", what: "after a lost finish the answer at hand is given",
			file: finish, old: "return Result{Response: rec.Response.clone(), Expires: rec.lifetime()}, nil", new: "return Result{Response: resp, Expires: rec.lifetime()}, nil",
			run: "^TestWhatWasStoredCounts$",
		},
		{
			rule: "CWCCheck", what: "an answer leaves a merged claim before the record was seen",
			file: engine, old: "\tif rec == nil {\n\t\treturn a.consult(ctx, f, resp, err)\n\t}\n\tcause",
			new: "\tif rec == nil && err != nil {\n\t\treturn Result{}, &handlerError{err}\n\t}\n\tif rec == nil {\n\t\treturn Result{Response: resp}, nil\n\t}\n\tcause",
			run: "^TestMergedClaimConsultsTheRecord$",
		},
		{
			rule: "MergedTakeOver", what: "a merged claim that takes a record over goes on as if it were new",
			file: commit, old: "\t\tf.restart = true\n", new: "", run: "^TestPhasesSurviveACrashAtEveryCall$/^claim_merged$",
		},
		{
			rule: "CWCTakeOver", what: "an answer that isn't stored leaves past what an earlier attempt committed and abandoned",
			file: engine, old: "\tcase v == takeOver:\n\t\tf.set(held)\n\t\tf.restart = true\n\t\treturn Result{}, nil\n\tcase v != again:",
			new: "\tcase v != again && v != takeOver:", run: "^TestMergedClaimAnswersPastItsOwnCommit$",
		},
		{
			rule: "AnswerAsStored", what: "an answer with other headers than the stored one is given",
			file: finish, old: " &&\n\t\tmaps.EqualFunc(rec.Response.Header, made.Response.Header, slices.Equal)", new: " &&\n\t\t(maps.EqualFunc(rec.Response.Header, made.Response.Header, slices.Equal) || slices.Contains([]string{}, \"\") == false)",
			run: "^TestFirstAnswerIsTheStoredOne$",
		},
		{
			rule: "AnswerWithItsJobs", what: "an answer is given though the commit that has its jobs failed",
			file: finish, old: "if rec.Keep == KeepOpen || f.outstanding() {", new: "if rec.Keep == KeepOpen {", run: "^TestAnswerWithoutItsJobs$",
		},
		{
			rule: "RelForm", what: "a repeated release has the form of the first",
			file: finish, old: "\t\tnext := released(prev, a.opt.Now(), b)\n",
			new: "\t\tnext := released(prev, a.opt.Now(), b)\n\t\tif free(rec, b) {\n\t\t\tnext.Keep, next.Expires = KeepNothing, seconds(a.opt.Now())\n\t\t}\n",
			run: "^TestReleaseAfterALateCommitKeepsIt$",
		},
		{
			rule: "RelAgain", what: "a release that meets its own later write gives up: the key stays locked",
			file: finish, old: "\t\tprev = held // our own later write had landed after all: decide again from it\n", new: "\t\treturn held, fenced, nil\n",
			run: "^TestReleaseAfterALateCommitKeepsIt$",
		},
	}
}

// patienceMutants break how long an attempt waits for the store.
func patienceMutants() []mutant {
	const claim, commit, patience = "idem/claim.go", "idem/flow_commit.go", "idem/patience.go"
	return []mutant{
		{
			rule: "Patience", what: "a finish is given up while there is time",
			file: patience, old: "\tpatient = math.MaxInt\n", new: "\tpatient = maxRounds + 0*math.MaxInt\n", run: "^TestFinishHasAllTheTimeThereIs$",
		},
		{
			rule: "AnswerTime", what: "writes after the handler go on until the deadline",
			file: patience, old: "return a.deadline.Add(-a.opt.Reserve / answerShare)", new: "return a.deadline.Add(-a.opt.Reserve / answerShare / 100)",
			run: "^TestEveryAnswerIsOutInTime$",
		},
		{
			rule: "AnswerTime", what: "what the store took from the deadline's other side is given to the next call",
			file: patience, old: " || a.spent.Load() {", new: " {", run: "^TestEveryAnswerIsOutInTime$",
		},
		{
			rule: "AnswerTime", what: "what is done before the handler goes on into its reserve",
			file: patience, old: "return a.deadline.Add(-a.opt.Reserve) }", new: "return a.end() }", run: "^(TestEveryAnswerIsOutInTime|TestEveryResumeIsOutInTime)$",
		},
		{
			rule: "AnswerTime", what: "a look before the claim takes all the time",
			file: claim, old: "a.within(ctx, time.Now().Add(half(a.unbegun())))", new: "a.within(ctx, a.deadline)", run: "^TestEveryAnswerIsOutInTime$",
		},
		{
			rule: "HalfTheTime", what: "one commit may take all the time left",
			file: patience, old: "max(time.Until(until)/2, 100*time.Millisecond)", new: "max(time.Until(until), 100*time.Millisecond)",
			run: "^TestOneCommitNeverTakesAllTheTime$",
		},
		{
			rule: "MaxClaim", what: "there is no limit on a claim but the invocation's",
			file: claim, old: "until = earlier(until, time.Now().Add(maxClaim))", new: "until = earlier(until, time.Now().Add(1000*maxClaim))",
			run: "^TestClaimIsGivenUpAfterAMinute$",
		},
		{
			rule: "Unstored", what: "an answer that could not be stored looks like one that was",
			file: "idem/finish.go", old: "Result{Response: resp, Unstored: true}", new: "Result{Response: resp}", run: "^TestUnstoredAnswerSaysSo$",
		},
		{
			rule: "Unstored", what: "the handler's own word on it goes out",
			file: "idem/serve.go", old: "\tdelete(h, StatusHeader) // the engine's word only\n", new: "", run: "^TestUnstoredAnswerSaysSo$",
		},
		{
			rule: "Unstored", what: "the client goes on with a key whose answer could not be stored",
			file: "idem/client/attempt.go", old: "if isUnstored(o.heard) && o.key != \"\" {", new: "if isUnstored(o.heard) && o.key == \"\" {",
			pkg: "idem/client", run: "^TestUnstoredAnswerEndsTheKey$",
		},
		{
			rule: "Unstored", what: "the journal forgets what a torn answer said of it",
			file: "idem/client/attempt.go", old: "\t\to.note(nil)\n", new: "", pkg: "idem/client", run: "^TestUnstoredAnswerEndsTheKey$",
		},
		{
			rule: "Crossed", what: "a crossed write is taken as overtaken",
			file: commit, old: "case l == crossed:", new: "case l == crossed && a == nil:", run: "^TestLateCommitOfOnesOwnIsNoTakeOver$",
		},
	}
}

// renewMutants break how a handler that outlives its time keeps its lease.
func renewMutants() []mutant {
	const commit, renew, state = "idem/flow_commit.go", "idem/renew.go", "idem/state.go"
	return []mutant{
		{
			rule: "Renew", what: "no lease is renewed", file: renew, old: "if f.a.opt.RenewFor < 0 {", new: "if f.a.opt.RenewFor != 0 {",
			run: "^TestHandlerThatOutlivesItsTimeKeepsItsKey$",
		},
		{
			rule: "Renew", what: "what ends after its time is not stored",
			file: "idem/patience.go", old: "if now.Before(end) || a.spent.Load() {", new: "if now.Before(end) || a.spent.Load() || rec != nil {",
			run: "^TestHandlerThatOutlivesItsTimeKeepsItsKey$",
		},
		{
			rule: "RenewLate", what: "requests that end in time are renewed",
			file: renew, old: "time.AfterFunc(time.Until(f.a.deadline)+f.a.spare(), func() {", new: "time.AfterFunc(time.Until(f.a.deadline)/2, func() {\n\t\tf.a.opt.LeaseMargin *= 4\n",
			run: "^TestRequestInTimeIsNotRenewed$",
		},
		{
			rule: "RenewBound", what: "a handler that hangs keeps its key for ever",
			file: renew, old: "time.Until(a.deadline) + a.opt.RenewFor", new: "time.Until(a.deadline) + 100*a.opt.RenewFor", run: "^TestRenewalsEnd$",
		},
		{
			rule: "RenewTurn", what: "a renewal and a phase's commit go side by side",
			file: renew, old: "\tf.turn <- struct{}{}\n\treturn func() { <-f.turn }", new: "\treturn func() {}", run: "^TestRenewalsAndPhasesGoTogether$",
		},
		{
			rule: "RenewCross", what: "a renewal whose answer was lost fences its own attempt's commit",
			file: commit, old: "l == crossed && renewal(held, prev) {", new: "l == crossed && renewal(held, prev) && a == nil {",
			run: "^TestRenewalsAndPhasesGoTogether$",
		},
		{
			rule: "RenewCross", what: "any later write of the attempt is passed over as a renewal",
			file: state, old: "now.Lease.After(prev.Lease) && sameShape(now, prev)", new: "now.Lease.After(prev.Lease)", run: "^TestOnlyARenewalIsARenewal$",
		},
		{
			rule: "RenewCross", what: "a write that moves no lease is passed over as a renewal",
			file: state, old: "now.Lease.After(prev.Lease) && sameShape(now, prev)", new: "sameShape(now, prev)", run: "^TestOnlyARenewalIsARenewal$",
		},
		{
			rule: "RenewStop", what: "a renewal outlives its handler",
			file: renew, old: "\t\tif !timer.Stop() {\n\t\t\t<-done\n\t\t}\n", new: "\t\ttimer.Stop()\n", run: "^TestNoRenewalOutlivesItsHandler$",
		},
		{
			rule: "RenewFenced", what: "a handler whose lease was taken over goes on calling others",
			file: renew, old: "\t\t_ = f.fail(fmt.Errorf(\"%w: another attempt has taken over\", ErrLeaseLost))\n", new: "\t\t_ = fmt.Errorf\n",
			run: "^TestRenewalThatIsFencedEndsTheOperation$",
		},
		{
			rule: "RenewFenced", what: "a handler isn't told that its lease is lost",
			file: commit, old: "\t\tf.lost(ErrLeaseLost)\n", new: "", run: "^TestLostLeaseEndsTheHandlersContext$",
		},
		{
			rule: "RenewOpen", what: "a renewal or a release goes on top of an answer",
			file: renew, old: "\tcase held.State != Open:\n\t\treturn", new: "\tcase held.State != Open && held == nil:\n\t\treturn", run: "^TestRenewalLeavesAnAnswerAlone$",
		},
	}
}

// resumeMutants break what completers and operators do.
func resumeMutants() []mutant {
	const resume, state = "idem/resume.go", "idem/state.go"
	return []mutant{
		{
			rule: "TakeOwnerK", what: "a ticket is good for another operation with the same ver",
			file: state, old: "rec.Owner != t.Owner || ", new: "", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TakeVer", what: "a ticket is good whatever was written since",
			file: state, old: " || rec.Ver != t.Ver", new: "", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TakeLease", what: "a completer takes a running request over",
			file: state, old: "case rec.Lease.After(now):\n\t\treturn ErrInFlight", new: "case rec.Lease.After(now) && rec.Ver < 0:\n\t\treturn ErrInFlight", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TakeOpen", what: "a completer takes a finished or stuck record over",
			file: state, old: " || rec.State != Open || over", new: " || over", run: "^TestTicketIsGoodForWhatItSaw$",
		},
		{
			rule: "TakeExpired", what: "a key that was given back is given up",
			file: state, old: " || over(rec.Expires, now):\n\t\treturn ErrMoved", new: ":\n\t\treturn ErrMoved", run: "^TestFreedKeyIsNotGivenUp$",
		},
		{
			rule: "TakeInput", what: "a completer takes up what it has no request for",
			file: state, old: "case rec.Input == nil || !rec.Expires.IsZero():", new: "case rec.Ver < 0:",
			run: "^TestTicketWithoutARequestIsRefused$",
		},
		{
			rule: "TriesTake", what: "tries aren't counted in the take-over",
			file: state, old: "\tr.Tries++\n", new: "", run: "^TestTriesThatDieAreCounted$",
		},
		{
			rule: "TakeHandler", what: "a handler ends another handler's operation",
			file: state, old: "case !slices.Contains(t.Handlers, rec.Handler):", new: "case t.Handlers == nil:", run: "^TestMemoryStore$/^store_take$", pkg: "idem/idemtest",
		},
		{
			rule: "TakeHandler", what: "an engine doesn't know its own operations by its function",
			file: resume, old: "\t\tsetDefault(&opt.Handlers[i].Function, e.opt.Function)\n", new: "\t\t_ = i\n", run: "^TestTicketsOnAPlainStore$",
		},
		{
			rule: "TakeTenant", what: "an operation is completed for another tenant",
			file: state, old: "case rec.Tenant != t.Tenant:", new: "case rec.Tenant != t.Tenant && t.Handlers == nil:", run: "^TestMemoryStore$/^store_take$", pkg: "idem/idemtest",
		},
		{
			rule: "TakeAck", what: "a take-over whose answer was lost is left alone",
			file: resume, old: "return rec, ours(rec), nil", new: "return rec, rec == nil, nil", run: "^TestTakeOverWhoseAnswerWasLost$",
		},
		{
			rule: "TakeResent", what: "a take-over that the SDK has sent twice is another's",
			file: resume, old: "return rec, taken || ours(rec), nil", new: "return rec, taken, nil", run: "^TestTakeOverThatWasSentTwiceIsOurs$",
		},
		{
			rule: "TriesTake", what: "there is no ceiling",
			file: resume, old: "case rec.Tries > e.opt.MaxTries:", new: "case rec.Tries < 0:", run: "^TestTriesThatDieAreCounted$",
		},
		{
			rule: "OwnNonce", what: "all completers have one nonce",
			file: resume, old: "pk: pk, owner: rand.Text(), resumed: true", new: "pk: pk, owner: rand.Text()[:0] + \"completer\", resumed: true",
			run: "^(TestTicketIsGoodForWhatItSaw|TestTwoCompletersAreTwoAttempts)$",
		},
		{
			rule: "BumpOwner", what: "an operator writes under the nonce of the attempt that got stuck",
			file: resume, old: "next.Owner = a.owner // a late", new: "_ = a.owner // a late", run: "^TestLateWriteDoesNotFitAfterASettlement$",
		},
		{
			rule: "BumpOwner", what: "giving up doesn't take the record over first",
			file: resume, old: "if rec, err = a.takeTicket(ctx, rec); err != nil {\n\t\treturn err", new: "if err != nil {\n\t\treturn err", run: "^TestLateWriteDoesNotFitAfterGivingUp$",
		},
		{
			rule: "OpCond", what: "an operator settles what isn't stuck",
			file: resume, old: "rec.State == Stuck || s.Answer", new: "rec.State != None || s.Answer", run: "^TestOnlyWhatIsStuckIsSettled$",
		},
		{
			rule: "OpCond", what: "an operator answers what somebody holds",
			file: resume, old: "return rec.State == Open && !rec.Lease.After(now) && ", new: "return rec.State == Open && ", run: "^TestOnlyWhatIsStuckIsSettled$",
		},
		{
			rule: "OpCond", what: "an operator who was overtaken is told that it is done",
			file: resume, old: "case l != landed:\n\t\treturn a.fail(\"settle\", ErrMoved)\n", new: "case l < 0:\n\t\treturn a.fail(\"settle\", ErrMoved)\n", run: "^TestTwoOperatorsDecideOnce$",
		},
		{
			rule: "OneDecision", what: "of two decisions that contradict each other one is carried out",
			file: resume, old: "case s.decisions() > 1:", new: "case s.decisions() > 4:",
			run: "^TestSettlementIsOneDecision$",
		},
		{
			rule: "DecisionSeen", what: "a decision is carried out on what nobody has looked at",
			file: resume, old: "case rec != nil && s.Seen.Owner != \"\" &&", new: "case rec != nil && s.Seen.Ver < 0 &&", run: "^TestSettlementIsAboutWhatWasSeen$",
		},
		{
			rule: "DecisionStays", what: "nobody can tell who decided what",
			file: resume, old: "next = finished(next, answer", new: "next = finished(rec, answer", run: "^TestSettlementsStayInTheRecord$",
		},
		{
			rule: "SettlingStartsAnew", what: "the sweep undoes a settlement, for how long it had lain there before",
			file: resume, old: "r.LastErr, r.Run = Open, rec.Ver+1, 0, \"\", millis(now)", new: "r.LastErr = Open, rec.Ver+1, 0, \"\"", run: "^TestSettlementsStayInTheRecord$",
		},
		{
			rule: "OwnNamespace", what: "a ticket reaches another application's records",
			file: resume, old: "if !strings.HasPrefix(pk, e.prefix) {", new: "if strings.HasPrefix(pk, \"#\") {", run: "^TestTicketOfAnotherNamespaceIsRefused$",
		},
		{
			rule: "IntentNeedsOutcome", what: "an unknown outcome may be tried again unsettled",
			file: resume, old: "\tcase begun:\n\t\treturn nil, fmt.Errorf", new: "\tcase begun && rec == nil:\n\t\treturn nil, fmt.Errorf", run: "^TestNotIdempotent$/^unknown$",
		},
	}
}
