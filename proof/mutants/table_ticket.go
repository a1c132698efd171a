package main

// ticketMutants break what becomes of a ticket: whose it is, when it is due, and
// that none is lost before its operation has ended.
func ticketMutants() []mutant {
	return []mutant{
		{
			rule: "EnvelopeSound", what: "a client's body passes for a completer's envelope",
			in: "lambda/internal/envelope.open", old: "len($all) != 1", new: "len($all) < 1", run: "^TestParseTicket$",
		},
		{
			rule: "EnvelopeSound", what: "an envelope with a member too many is taken",
			in: "lambda/internal/envelope.members", old: "len($m) != $known", new: "false && $known > 0", run: "^TestParseTicket$",
		},
		{
			rule: "EnvelopeSound", what: "an envelope without a version is taken",
			in: "lambda/internal/envelope.ticket", old: `$t.PK == "" || $t.Owner == "" || $t.Ver < 1`, new: `$t.PK == "" || $t.Owner == ""`, run: "^TestParseTicket$",
		},
		{
			rule: "EnvelopeSound", what: "an envelope without an owner is taken",
			in: "lambda/internal/envelope.ticket", old: `$t.PK == "" || $t.Owner == "" || $t.Ver < 1`, new: `$t.PK == "" || $t.Ver < 1`, run: "^TestParseTicket$",
		},
		{
			rule: "EnvelopeSound", what: "a released operation's ticket waits for a lease that nobody has",
			in: "lambda/internal/envelope.ticket", old: `$err = errors.Join($err, json.Unmarshal($released, &$t.Released))`, new: "_ = $released", run: "^TestTicketEnvelope$",
		},
		{
			rule: "EnvelopeSound", what: "a large event is searched for an envelope",
			in: "lambda/internal/envelope.open", old: "len($payload) > limit ||", new: "", run: "^TestParseTicket$",
		},
		{
			rule: "OutcomeOf", what: "a store that is down ends a ticket whose operation was to be stuck",
			in: "lambda/internal/envelope.OutcomeOf", old: "case errors.Is($err, idem.ErrUnavailable), errors.Is($err, store.ErrUnknown), errors.Is($err, idem.ErrConflict):", new: "case errors.Is($err, store.ErrUnknown):", run: "^TestOutcomeOf$",
		},
		{
			rule: "OutcomeOf", what: "an operation in flight counts as a failed try",
			in: "lambda/internal/envelope.OutcomeOf", old: "case errors.Is($err, idem.ErrInFlight):", new: "case false:", run: "^TestOutcomeOf$",
		},
		{
			rule: "OutcomeOf", what: "an overtaken completer counts as a failed try",
			in: "lambda/internal/envelope.OutcomeOf", old: "case errors.Is($err, jobs.ErrMoved), errors.Is($err, idem.ErrLeaseLost):", new: "case errors.Is($err, jobs.ErrMoved):", run: "^TestOutcomeOf$",
		},
		{
			rule: "OutcomeOf", what: "another handler's operation counts as a failed try",
			in: "lambda/internal/envelope.OutcomeOf", old: "case errors.Is($err, jobs.ErrNotMine):", new: "case false:", run: "^TestOutcomeOf$",
		},
		{
			rule: "OutcomeOf", what: "nobody is told that an operation is stuck",
			in: "lambda/internal/envelope.OutcomeOf", old: "case errors.Is($err, idem.ErrStuck):", new: "case false:", run: "^TestOutcomeOf$",
		},
		{
			rule: "OutcomeKnown", what: "a time to wait may be below zero, or without end",
			in: "lambda/internal/envelope.ParseOutcome", old: "min(max($o.RetryAfterMS, 0), $day.Milliseconds())", new: "$o.RetryAfterMS + 0*$day.Milliseconds()", run: "^TestParseOutcome$",
		},
		{
			rule: "OutcomeKnown", what: "a function that crashed has done the operation",
			in: "lambda/completer.function.Resume", old: "$out.FunctionError != nil", new: "false", run: "^TestInvoke$",
		},
		{
			rule: "OutcomeKnown", what: "a function that couldn't be invoked has done the operation",
			in: "lambda/completer.function.Resume", old: "if $err != nil { return failed(fmt.Sprintf(\"invoke %s: %v\", $f.name, $err)) }; if $out.FunctionError", new: "if $err != nil { return TicketOutcome{Kind: TicketDone} }; if $out.FunctionError", run: "^TestInvoke$",
		},
		{
			rule: "TicketDue", what: "a ticket is used before it is due",
			in: "lambda/completer.Handler.message", old: "case $t.Due.After($now):", new: "case false:", run: "^TestTicketWaitsWhereItIs$",
		},
		{
			rule: "TicketDue", what: "an operation is tried while its client may come back",
			in: "lambda/completer.Handler.operation", old: "if $due.After($now) {", new: "if false {", run: "^TestTicketWaitsWhereItIs$",
		},
		{
			rule: "TicketDue", what: "an operation in flight is tried again at once",
			in: "lambda/completer.Handler.after", old: "$h.opt.Now().Add($o.RetryAfter + $h.opt.Grace)", new: "$h.opt.Now()", run: "^TestOutcomes$",
		},
		{
			rule: "TicketDue", what: "a failed ticket is tried again without a pause",
			in: "lambda/completer.Handler.after", old: "$h.opt.Now().Add($pause)", new: "$h.opt.Now().Add(0 * $pause)", run: "^TestOutcomes$",
		},
		{
			rule: "TicketDue", what: "jobs that were delayed wait as long as an operation with a client",
			in: "lambda/completer.Handler.message", where: "func ($h *Handler) message", old: "state.BackOff(state.JobPause,", new: "state.BackOff($h.opt.Grace,", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketStays", what: "a ticket that waits is deleted",
			in: "lambda/completer.Handler.wait", old: `$h.opt.Logger.WarnContext($ctx, "ticket waits for the visibility timeout of its queue", "message", $m.MessageId, "error", $err) }; return true`,
			new: `$h.opt.Logger.WarnContext($ctx, "ticket waits for the visibility timeout of its queue", "message", $m.MessageId, "error", $err); return false }; return true`,
			run: "^TestTicketIsKeptWhateverFails$",
		},
		{
			rule: "TicketStays", what: "a ticket waits for longer than SQS hides a message",
			in: "lambda/completer.Handler.wait", old: "min($due.Sub($now), maxHidden-$now.Sub($m.at))", new: "$due.Sub($now)", run: "^TestTicketWaitsWhereItIs$",
		},
		{
			rule: "TicketStays", what: "the longest wait begins at the end of a batch",
			in: "lambda/completer.Handler.wait", old: "maxHidden-$now.Sub($m.at)", new: "maxHidden", run: "^TestLongestWaitBeginsAtTheReceipt$",
		},
		{
			rule: "TicketStays", what: "so many tickets wait that their queue gives nothing more",
			in: "lambda/completer.Handler.wait", old: "if $h.queue.crowded($ctx) {", new: "if $h.queue.crowded($ctx) && false {", run: "^TestTooManyTicketsDontWait$",
		},
		{
			rule: "TicketStays", what: "each wait asks the queue how many wait",
			in: "lambda/completer.Queue.crowded", old: "$now.Sub($q.asked) >= askEvery", new: "true", run: "^TestTooManyTicketsDontWait$",
		},
		{
			rule: "TicketStays", what: "a ticket whose take-over came too late leaves an open operation without one",
			in: "lambda/completer.Handler.after", old: "case TicketInFlight, TicketMoved:", new: "case TicketInFlight:", run: "^TestOutcomes$",
		},
		{
			rule: "TicketStays", what: "what expires in the queue is lost without a word",
			in: "lambda/completer.Handler.message", old: "$now.Sub(later(time.UnixMilli($sent), $t.Due)) > state.TicketLife", new: "false", run: "^TestTicketsThatArePeoples$",
		},
		{
			rule: "TicketStays", what: "a message that is no ticket ends unseen",
			in: "lambda/completer.Handler.message", old: "return $h.ended($ctx, $m, $t, $err)", new: "return false", run: "^TestTicketsThatArePeoples$",
		},
		{
			rule: "TicketStays", what: "an operation that isn't taken up has a ticket more with each sweep",
			in: "lambda/completer.Handler.operation", old: "$o.Kind == TicketFailed && $left", new: "false", run: "^TestOutcomes$",
		},
		{
			rule: "TicketStays", what: "an operation whose request was altered is tried for ever",
			in: "lambda/internal/envelope.OutcomeOf", old: "case errors.Is($err, idem.ErrCorrupt):", new: "case false:", run: "^TestOutcomeOf$",
		},
		{
			rule: "TicketStays", what: "each write of an open operation makes a ticket",
			in: "dynamo/stream.Completer.run", old: "$waits[$ch.new.PK] || !state.Completable($ch.new)", new: "!state.Completable($ch.new)", run: "^TestOneTicketForAnOperation$",
		},
		{
			rule: "TicketStays", what: "an operation that people let go on has no ticket",
			in: "dynamo/stream.Completer.run", old: "$before != nil && state.Completable($before)", new: "$before != nil", run: "^TestOneTicketForAnOperation$",
		},
		{
			rule: "TicketStays", what: "an operation whose lease people have ended is taken up when the lease would have ended",
			in: "dynamo/stream.Completer.run", old: "if $ch.freed() || $ch.new.State == store.Stuck {", new: "if $ch.new.State == store.Stuck {", run: "^TestLeaseThatPeopleEndMakesATicket$",
		},
		{
			rule: "TicketStays", what: "an operation that was stuck within a batch, and is tried again, has no ticket",
			in: "dynamo/stream.Completer.run", old: "if $ch.freed() || $ch.new.State == store.Stuck {", new: "if $ch.freed() || $ch.new.State == store.None {", run: "^TestRetryOfAStuckOperationMakesATicket$",
		},
		{
			rule: "TicketStays", what: "each release after a decision makes a ticket",
			in: "dynamo/stream.change.freed", old: "return !slices.ContainsFunc($before.Settled, $last.Equal)", new: "return $last.At.Unix() > 0 || slices.Contains([]bool{}, true)", run: "^TestLeaseThatPeopleEndMakesATicket$",
		},
		{
			rule: "TicketStays", what: "an operation that nobody completes leaves the list with the next sweep",
			in: "dynamo/stream.finding.lasts", old: "$why == state.ReasonOpen", new: "$why == state.ReasonKept", run: "^TestTicketsThatEndAreListed$",
		},
		{
			rule: "TicketStays", what: "an operation that is done stays on the list",
			in: "dynamo/stream.finding.lasts", old: "$why == state.ReasonOpen", new: "true || $why == state.ReasonOpen", run: "^TestTicketsThatEndAreListed$",
		},
		{
			rule: "Breaker", what: "a function that fails uses up the tries of all its operations",
			in: "lambda/completer.breakers.enter", old: "case !$known || $one.failed < failures:", new: "case !$known || true:", run: "^TestFunctionThatFailsIsProbed$",
		},
		{
			rule: "Breaker", what: "one bad operation stops its function's others",
			in: "lambda/completer.breakers.enter", old: "$one.failed < failures", new: "false", run: "^TestFunctionThatFailsIsProbed$",
		},
		{
			rule: "Breaker", what: "all tickets probe at once",
			in: "lambda/completer.breakers.enter", old: "case $one.probing:", new: "case false:", run: "^TestOneProbeAtATime$",
		},
		{
			rule: "Breaker", what: "a probe that says nothing is the last",
			in: "lambda/completer.breakers.leave", old: "$one.probing = false", new: "", run: "^TestOneProbeAtATime$",
		},
		{
			rule: "Breaker", what: "a function that is there again is probed on",
			in: "lambda/completer.breakers.leave", old: "$b.all.Drop($function); return", new: "return", run: "^TestFunctionThatFailsIsProbed$",
		},
		{
			rule: "Breaker", what: "a function that is away is asked every minute",
			in: "lambda/completer.breakers.leave", old: "min(max($one.failed-failures, 0), doublings)", new: "min(max($one.failed-failures, 0), 0)", run: "^TestFunctionThatFailsIsProbed$",
		},
		{
			rule: "Lineage", what: "an invocation forgets its chain",
			in: "internal/servers/lambdarun.descend", old: "strconv.Itoa($n + 1)", new: "strconv.Itoa($n)", run: "^TestLineage$",
		},
		{
			rule: "TicketKept", what: "a ticket whose time another has taken ends in the dead-letter queue without a try",
			in: "lambda/completer.Handler.message", old: "$ok && time.Until($deadline) < minTime", new: "false && $ok && time.Until($deadline) < minTime", run: "^TestNoTimeLeft$",
		},
		{
			rule: "TicketKept", what: "a failed ticket's message isn't named to SQS",
			in: "lambda/completer.Handler.handle", old: "$re.BatchItemFailures = append($re.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: $ev.Records[$i].MessageId})", new: "_ = $i", run: "^TestNoTimeLeft$",
		},
		{
			rule: "TicketKept", what: "a resumer that panics takes the other tickets with it",
			in: "lambda/completer.Handler.guarded", old: "$o = failed(redact.Panic($v))", new: "panic($v)", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketKept", what: "a ticket for jobs goes to a handler of operations",
			in: "lambda/completer.Handler.message", old: `case $t.Jobs:`, new: "case false:", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketKept", what: "a ticket for jobs without a drain is done",
			in: "lambda/completer.Handler.deliver", old: "return TicketOutcome{Kind: TicketNotMine, Error: \"it is for a drain\"}", new: "return TicketOutcome{Kind: TicketDone}", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketKept", what: "jobs that could not be delivered lose their ticket",
			in: "lambda/completer.Handler.deliver", old: "return failed($err.Error())", new: "_ = $err", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketQueue", what: "a ticket that SQS refuses counts as put",
			in: "lambda/completer.Queue.send", old: `$set($e.Id, fmt.Errorf(`, new: `$set($e.Id, nil); _ = (fmt.Errorf(`, run: "^TestQueueTakesTenACall$",
		},
		{
			rule: "TicketQueue", what: "a ticket of which the answer says nothing counts as put",
			in: "lambda/completer.Queue.send", old: `$errs[$i] = errors.New("completer: sqs: the answer doesn't tell")`, new: "", run: "^TestQueueTakesTenACall$",
		},
		{
			rule: "TicketQueue", what: "a queue that is down is asked for each ten tickets",
			in: "lambda/completer.Queue.sendAll", old: `$untried = fmt.Errorf("completer: sqs: %w: the queue is unavailable to an earlier one", jobs.ErrHeldBack)`, new: "", run: "^TestQueueThatIsDownIsAskedOnce$",
		},
		{
			rule: "TicketQueue", what: "a ticket is visible before it is due",
			in: "lambda/completer.Queue.delay", old: "seconds(min($due.Sub($q.now()), maxDelay))", new: "seconds(min($due.Sub($q.now()), 0))", run: "^TestQueueHidesTickets$",
		},
		{
			rule: "TicketQueue", what: "a ticket that is due in an hour is one that SQS refuses",
			in: "lambda/completer.Queue.delay", old: "seconds(min($due.Sub($q.now()), maxDelay))", new: "seconds($due.Sub($q.now()))", run: "^TestQueueHidesTickets$",
		},
		{
			rule: "TicketQueue", what: "a message that isn't a whole ticket is used",
			in: "lambda/completer.parse", old: `$m.PK == "" || $m.Operation == ""`, new: `$m.PK == "" && $m.Operation == ""`, run: "^TestTicketsThatArePeoples$",
		},
		{
			rule: "TicketQueue", what: "a FIFO queue, which has no delay for a message, is taken",
			in: "lambda/completer.NewQueue", old: `|| strings.HasSuffix($url, ".fifo")`, new: `|| strings.HasSuffix($url, ".fif0")`, run: "^TestMistakesAreRefused$",
		},
		{
			rule: "JobsRoute", what: "a job without a sink counts as delivered",
			in: "idem/jobs.Route.Deliver", old: `$errs[$i] = fmt.Errorf("%w: there is none for jobs of kind %q (the worker's Sinks)", ErrSinkDown, $d.Kind)`, new: "", run: "^TestRouteHandsASinkItsKindsTogether$",
		},
		{
			rule: "JobsRoute", what: "a job is parked whose function was deployed before its sink",
			in: "idem/jobs.Route.Deliver", old: `fmt.Errorf("%w: there is none for jobs of kind %q (the worker's Sinks)", ErrSinkDown, $d.Kind)`, new: `fmt.Errorf("there is none for jobs of kind %q (the worker's Sinks)", $d.Kind)`, pkg: "lambda/worker", run: "^TestKindBeforeItsSink$",
		},
		{
			rule: "BusExists", what: "events to a bus that doesn't exist count as delivered",
			in: "lambda/sink.Bus.exists", old: "$b.known || $b.name == \"default\"", new: "true || $b.known", run: "^TestBusThatDoesNotExist$",
		},
		{
			rule: "BusExists", what: "a kind is staged that no bus takes",
			in: "idem.checkJob", old: "len($j.Kind) > maxKind", new: "false", run: "^TestMisusedPhasesAreRefused$",
		},
		{
			rule: "JobsRoute", what: "a sink that says nothing of a job has delivered it",
			in: "idem/jobs.Route.Deliver", old: "errlist.Pad(guarded($ctx, $r[$part[0].Kind], $part), len($part))", new: "errlist.Pad(guarded($ctx, $r[$part[0].Kind], $part), 0)", run: "^TestRouteWorksSideBySide$",
		},
		{
			rule: "JobsRoute", what: "a sink that panics takes the other sinks' jobs with it",
			in: "idem/jobs.guarded", old: "$errs = slices.Repeat(", new: "panic($v); $errs = slices.Repeat(", where: "$v := recover()", run: "^TestRouteWorksSideBySide$",
		},
		{
			rule: "JobsRoute", what: "kinds that go to one sink are handed to it apart, and lose their order",
			in: "idem/jobs.Route.end", where: "$kind string", old: "return end{sink: $sink}", new: "return end{sink: $sink, kind: $kind}", run: "^TestRouteHandsASinkItsKindsTogether$",
		},
		{
			rule: "JobsOrder", what: "a later job of a group overtakes one that failed",
			in: "idem/jobs.SinkFunc.Deliver", old: "case $held[$d.Group]:", new: "case false:", run: "^TestSinkFuncThatIsDownIsCalledOnce$",
		},
		{
			rule: "JobsOrder", what: "a job is handed out after the time is over",
			in: "idem/jobs.SinkFunc.Deliver", old: "case $ctx.Err() != nil:", new: "case false:", run: "^TestSinkFuncStopsWithItsTime$",
		},
		{
			rule: "JobsOrder", what: "a panic's text, which may hold the job's data, is told",
			in: "idem/jobs.SinkFunc.try", old: `fmt.Errorf("panic with a %T", $v)`, new: `fmt.Errorf("panic with a %v", $v)`, run: "^TestSinkFuncTellsNoPanicsText$",
		},
		{
			rule: "WorkerShare", what: "a queue's tickets of an hour end a worker's share of the stream",
			in: "lambda/worker.Worker.Invoke", old: "$w.tickets.Invoke(atEase($ctx), $payload)", new: "$w.tickets.Invoke($ctx, $payload)", run: "^TestTicketsAreAtEase$",
		},
		{
			rule: "WorkerShare", what: "a sink that panics ends the batch",
			in: "lambda/worker.sharedSink.Deliver", old: "if $v := recover(); $v != nil {", new: "if $v := recover(); $v != nil { panic($v)", run: "^TestPanicOfASinkForAll$",
		},
		{
			rule: "WorkerShare", what: "a job whose sink hangs is parked for it",
			in: "lambda/worker.sharedSink.Deliver", old: `$err = fmt.Errorf("%w: its time is up: %w", jobs.ErrSinkDown, $err)`, new: "", run: "^TestShareOfASlowSink$",
		},
		{
			rule: "WorkerShare", what: "a share never grows again",
			in: "lambda/worker.share.turn", old: "$s.set(min(2*$had, $s.full))", new: "", run: "^TestShareOfASinkThatHangs$",
		},
		{
			rule: "WorkerShare", what: "a share is cut though the sink takes jobs",
			in: "lambda/worker.share.turn", old: "case $mine.Err() == nil || $progress:", new: "case $mine.Err() == nil:", run: "^TestShareGrowsUnderLoad$",
		},
		{
			rule: "WorkerEase", what: "what a lost stream left waits for want of time",
			in: "lambda/worker.share.use", old: "!$more || easeOf($ctx) == nil", new: "true || $more", run: "^TestTurnsKeepTheOrder$",
		},
		{
			rule: "WorkerEase", what: "each page of a sweep waits for a sink that hangs",
			in: "lambda/worker.share.turn", old: "$eased.note($s, true)", new: "", run: "^TestEaseOfASinkThatHangs$",
		},
		{
			rule: "WorkerEase", what: "a second turn overtakes a job of the same group that failed",
			in: "lambda/worker.untried", old: "$failed[$batch[$i].Group] = true", new: "", run: "^TestTurnsKeepTheOrder$",
		},
		{
			rule: "WorkerSource", what: "another queue's messages are read as tickets, and another table's stream as the table's",
			in: "lambda/worker.sourceOf", old: `case "aws:sqs": return sourceQueue, nil`, new: `case "aws:sqs", "aws:sns", "aws:kinesis", "aws:s3": return sourceQueue, nil`, run: "^TestSourceOf$",
		},
		{
			rule: "WorkerSource", what: "an empty event begins a sweep",
			in: "lambda/worker.sourceOf", old: `case "aws.scheduler", "aws.events":`, new: `case "aws.scheduler", "aws.events", "":`, run: "^TestSourceOf$",
		},
	}
}
