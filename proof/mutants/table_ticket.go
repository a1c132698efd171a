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
			rule: "EnvelopeSound", what: "a released operation's ticket waits for a lease that nobody has", row: "R78",
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
			in: "lambda/completer.Handler.message", old: "$t.Due.After($h.opt.Now())", new: "false", run: "^TestTicketNotDueGoesBack$",
		},
		{
			rule: "TicketDue", what: "an operation in flight is tried again at once", row: "M3",
			in: "lambda/completer.Handler.message", old: "$t.Due = $h.opt.Now().Add($o.RetryAfter + $h.opt.Grace)", new: "$t.Due = $h.opt.Now()", run: "^TestOutcomes$",
		},
		{
			rule: "TicketDue", what: "a failed ticket is tried again without a pause", row: "M3",
			in: "lambda/completer.Handler.message", old: `$log.WarnContext($ctx, "not completed", "error", $o.Error); $t.Due = $h.opt.Now().Add(state.BackOff($grace, $t.Tries-1))`, new: "$t.Due = $h.opt.Now()", run: "^TestOutcomes$",
		},
		{
			rule: "TicketDue", what: "jobs that were delayed wait as long as an operation with a client",
			in: "lambda/completer.Handler.message", old: "$grace = state.JobPause", new: "", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketKept", what: "a ticket that can't be read is deleted",
			in: "lambda/completer.Handler.message", old: "if $err != nil { return $err }; if $t.Due", new: "if $err != nil { return nil }; if $t.Due", run: "^TestMessagesThatAreNoTickets$",
		},
		{
			rule: "TicketKept", what: "a ticket that can't be requeued is deleted",
			in: "lambda/completer.Handler.again", old: "return errlist.Pad($h.queue.Put($ctx, []jobs.Ticket{$t}), 1)[0]", new: "errlist.Pad($h.queue.Put($ctx, []jobs.Ticket{$t}), 1); return nil", run: "^TestTicketThatCannotGoBackStays$",
		},
		{
			rule: "TicketKept", what: "a ticket whose time another has taken ends in the dead-letter queue without a try",
			in: "lambda/completer.Handler.message", old: "$ok && time.Until($deadline) < minTime", new: "false && $ok && time.Until($deadline) < minTime", run: "^TestNoTimeLeft$",
		},
		{
			rule: "TicketKept", what: "a ticket is given up after its first try", row: "M3",
			in: "lambda/completer.Handler.message", old: "$t.Tries >= $h.opt.MaxTries", new: "$t.Tries >= 1", run: "^TestOutcomes$",
		},
		{
			rule: "TicketKept", what: "a ticket is tried without end", row: "M3",
			in: "lambda/completer.Handler.message", old: "$t.Tries >= $h.opt.MaxTries", new: "false", run: "^TestOutcomes$",
		},
		{
			rule: "TicketKept", what: "a failed ticket's message isn't named to SQS",
			in: "lambda/completer.Handler.Handle", old: "$re.BatchItemFailures = append($re.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: $ev.Records[$i].MessageId})", new: "", run: "^TestNoTimeLeft$",
		},
		{
			rule: "TicketKept", what: "a resumer that panics takes the other tickets with it",
			in: "lambda/completer.Handler.resume", old: "$o = failed(redact.Panic($v))", new: "panic($v)", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketKept", what: "a ticket for jobs goes to a handler of operations",
			in: "lambda/completer.Handler.resume", old: `$t.Jobs == ""`, new: "true", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketKept", what: "a ticket for jobs without a drain is done",
			in: "lambda/completer.Handler.resume", old: "return TicketOutcome{Kind: TicketNotMine, Error: \"it is for a drain\"}", new: "return TicketOutcome{Kind: TicketDone}", run: "^TestTicketsOfJobs$",
		},
		{
			rule: "TicketKept", what: "jobs that could not be delivered lose their ticket",
			in: "lambda/completer.Handler.resume", old: "return failed($err.Error())", new: "_ = $err", run: "^TestTicketsOfJobs$",
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
			rule: "TicketQueue", what: "a queue that is down is asked for each ten tickets", row: "M90",
			in: "lambda/completer.Queue.Put", old: `$untried = fmt.Errorf("completer: sqs: %w: the queue is unavailable to an earlier one", jobs.ErrHeldBack)`, new: "", run: "^TestQueueThatIsDownIsAskedOnce$",
		},
		{
			rule: "TicketQueue", what: "a ticket is visible before it is due",
			in: "lambda/completer.Queue.delay", old: "min(max($due.Sub($q.now()), 0), maxDelay)", new: "min(max($due.Sub($q.now()), 0), 0)", run: "^TestQueueHidesTickets$",
		},
		{
			rule: "TicketQueue", what: "a ticket that is due in an hour is one that SQS refuses",
			in: "lambda/completer.Queue.delay", old: "min(max($due.Sub($q.now()), 0), maxDelay)", new: "max($due.Sub($q.now()), 0)", run: "^TestQueueHidesTickets$",
		},
		{
			rule: "TicketQueue", what: "a ticket loses its tries on its way through the queue", row: "M3",
			in: "lambda/completer.parse", old: "time.UnixMilli($m.DueMS), $m.Tries", new: "time.UnixMilli($m.DueMS), 0", run: "^TestOutcomes$",
		},
		{
			rule: "TicketQueue", what: "a message that isn't a whole ticket is used",
			in: "lambda/completer.parse", old: `$dec.More() || $m.PK == "" || !$ofJobs && !$ofOperation || $m.Tries < 0`, new: `$dec.More() || $m.PK == "" || $ofJobs && $ofOperation || $m.Tries < 0`, run: "^TestMessagesThatAreNoTickets$",
		},
		{
			rule: "TicketQueue", what: "a FIFO queue, which has no delay for a message, is taken",
			in: "lambda/completer.NewQueue", old: `|| strings.HasSuffix($url, ".fifo")`, new: `|| strings.HasSuffix($url, ".fif0")`, run: "^TestMistakesAreRefused$",
		},
		{
			rule: "TicketNamespace", what: "a ticket goes to another namespace's engine",
			in: "lambda/completer.ByNamespace.Resume", old: "$r := $m[$namespace]", new: "$r := $m[\"\"]; _ = $namespace", run: "^TestByNamespace$",
		},
		{
			rule: "JobsRoute", what: "a job without a sink counts as delivered",
			in: "idem/jobs.Route.Deliver", old: `$errs[$i] = fmt.Errorf("%w: there is none for jobs of kind %q", ErrSinkDown, $d.Kind)`, new: "", run: "^TestRouteHandsASinkItsKindsTogether$",
		},
		{
			rule: "JobsRoute", what: "a job is parked whose function was deployed before its sink",
			in: "idem/jobs.Route.Deliver", old: `fmt.Errorf("%w: there is none for jobs of kind %q", ErrSinkDown, $d.Kind)`, new: `fmt.Errorf("there is none for jobs of kind %q", $d.Kind)`, pkg: "lambda/worker", run: "^TestKindBeforeItsSink$",
		},
		{
			rule: "RedriveFilter", what: "a filter hands out jobs that failed for another reason",
			in: "cmd/samekey.redriver.matching", old: "strings.Contains($j.Failed, $m.cause)", new: "true", run: "^TestRedriveByFilters$",
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
			rule: "JobsOrder", what: "a later job of a group overtakes one that failed", row: "M90",
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
			rule: "WorkerShare", what: "a queue's tickets of an hour end a worker's share of the stream", row: "M132",
			in: "lambda/worker.Worker.Invoke", old: "$w.tickets.Invoke(atEase($ctx), $payload)", new: "$w.tickets.Invoke($ctx, $payload)", run: "^TestTicketsAreAtEase$",
		},
		{
			rule: "WorkerShare", what: "a sink that panics ends the batch", row: "M132",
			in: "lambda/worker.sharedSink.Deliver", old: "if $v := recover(); $v != nil {", new: "if $v := recover(); $v != nil { panic($v)", run: "^TestPanicOfASinkForAll$",
		},
		{
			rule: "WorkerShare", what: "a job whose sink hangs is parked for it", row: "M132",
			in: "lambda/worker.sharedSink.Deliver", old: `$err = fmt.Errorf("%w: its time is up: %w", jobs.ErrSinkDown, $err)`, new: "", run: "^TestShareOfASlowSink$",
		},
		{
			rule: "WorkerShare", what: "a share never grows again", row: "M116",
			in: "lambda/worker.share.turn", old: "$s.set(min(2*$had, $s.full))", new: "", run: "^TestShareOfASinkThatHangs$",
		},
		{
			rule: "WorkerShare", what: "a share is cut though the sink takes jobs", row: "M116",
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
