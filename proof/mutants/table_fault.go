package main

// faultMutants break the sinks: which refusal is whose fault, what an answer says of
// each job, and the form in which a job goes out.
func faultMutants() []mutant {
	return []mutant{
		{
			rule: "SinkAnswer", what: "a job of which the answer says nothing counts as delivered",
			in: "lambda/sink.missing", old: "$all[$i] = &fault{ofSink, errUntold}", new: "_ = $i", run: "^TestPartOfACallFails$",
		},
		{
			rule: "SinkAnswer", what: "a message that SQS refuses counts as delivered",
			in: "lambda/sink.NewQueue", old: "$errs.set($e.Id, entryFault(", new: "$errs.set($e.Id, nil); _ = (entryFault(", run: "^TestPartOfACallFails$",
		},
		{
			rule: "SinkAnswer", what: "an event that EventBridge refuses counts as delivered",
			in: "lambda/sink.NewBus", old: "$e.ErrorCode == nil", new: "true || $e.ErrorCode == nil", run: "^TestPartOfACallFails$",
		},
		{
			rule: "SinkAnswer", what: "an asynchronous invocation that wasn't accepted counts as delivered",
			in: "lambda/sink.Function.invoke", old: "case $out.StatusCode != $accepted:", new: "case false && $out.StatusCode != $accepted:", run: "^TestPartOfACallFails$",
		},
		{
			rule: "SinkAnswer", what: "a sink's failure as a whole counts as delivered",
			in: "lambda/sink.batcher.send", old: "$r.down = $f.blame == ofSink; for _, $i := range $now { $r.note($i, $f) }", new: "$r.down = $f.blame == ofSink", run: "^(TestCallFails|TestBlameByStatus)$",
		},
		{
			rule: "SinkAlone", what: "a job that a sink refuses takes its whole batch with it",
			in: "lambda/sink.batcher.send", old: "len($now) > 1 && $f.blame != ofSink", new: "false", run: "^(TestCallFails|TestBlameByStatus)$",
		},
		{
			rule: "SinkBlame", what: "a job that is too large is tried without end",
			in: "lambda/sink.classes", old: "case http.StatusRequestEntityTooLarge: return ofJob", new: "", run: "^(TestCallFails|TestBlameByStatus)$",
		},
		{
			rule: "SinkBlame", what: "a denied call parks its job",
			in: "lambda/sink.classes", old: "http.StatusUnauthorized, http.StatusForbidden,", new: "http.StatusUnauthorized,", run: "^TestBlameByStatus$",
		},
		{
			rule: "SinkBlame", what: "a throttled entry parks its job",
			in: "lambda/sink.codes.of", old: "return ofSink, $throttled", new: "return ofSink, false && $throttled", run: "^(TestCallFails|TestPartOfACallFails)$",
		},
		{
			rule: "SinkBlame", what: "a job whose refusal is known by its code counts as the sink's fault",
			in: "lambda/sink.callFault", old: "return &fault{$b, $err}", new: "return &fault{ofSink + 0*$b, $err}", run: "^TestErrorsOnTheWire$",
		},
		{
			rule: "SinkBlame", what: "a fault of the network parks its job",
			in: "lambda/sink.callFault", old: "if !$ok { return &fault{ofSink, $err} }", new: "if !$ok { return &fault{ofJob, $err} }", run: "^(TestCallFails|TestPartOfACallFails)$",
		},
		{
			rule: "SinkBlame", what: "an entry's unknown code is the job's fault without a doubt",
			in: "lambda/sink.entryFault", old: "$f.blame = inDoubt", new: "$f.blame = ofJob", run: "^TestPartOfACallFails$",
		},
		{
			rule: "SinkBlame", what: "an outage isn't told as one: it counts against its jobs",
			in: "lambda/sink.round.note", old: `$r.errs[$i] = fmt.Errorf("%s: %w: %w", $r.service.name, jobs.ErrSinkDown, $f.err)`, new: "_ = jobs.ErrSinkDown", run: "^(TestCallFails|TestPartOfACallFails)$",
		},
		{
			rule: "SinkOrder", what: "a later job of a FIFO group overtakes one that failed",
			in: "lambda/sink.batcher.release", old: "if $held[$all[$i].Group] {", new: "if false {", run: "^TestGroupsKeepTheirOrder$",
		},
		{
			rule: "SinkOrder", what: "two jobs of a FIFO group go out in one batch, of which one may fail",
			in: "lambda/sink.batcher.next", old: "$b.ordered && $groups[$all[$i].Group]", new: "false", run: "^TestGroupsKeepTheirOrder$",
		},
		{
			rule: "SinkOrder", what: "a later job of a function's group overtakes one that failed",
			in: "lambda/sink.oneByOne.deliver", old: "case $held[$d.Group]:", new: "case false:", run: "^TestGroupsKeepTheirOrder$",
		},
		{
			rule: "SinkOrder", what: "a job is sent after the time is over",
			in: "lambda/sink.round.over", old: "case $ctx.Err() != nil:", new: "case false:", run: "^TestTimeIsUp$",
		},
		{
			rule: "SinkLimits", what: "a batch has more entries than the service takes",
			in: "lambda/sink.batcher.next", old: "len($now) == $b.service.entries ||", new: "", run: "^(TestCallFails|TestPartOfACallFails)$",
		},
		{
			rule: "SinkLimits", what: "a batch has more bytes than the service takes",
			in: "lambda/sink.batcher.next", old: "len($now) > 0 && $bytes+$size > $b.service.bytes", new: "false && $bytes+$size > $b.service.bytes", run: "^TestSizesAreCountedAsTheServiceCountsThem$",
		},
		{
			rule: "SinkForm", what: "a FIFO message has no id by which SQS knows its copy",
			in: "lambda/sink.messages", old: "$m.dedup, $m.group = &$d.JobID, aws.String(group($d.Group))", new: "$m.group = aws.String(group($d.Group))", run: "^TestMessages$",
		},
		{
			rule: "SinkForm", what: "a group's name that SQS refuses is sent",
			in: "lambda/sink.group", old: "len($g) <= $limit && !strings.ContainsFunc($g, $bad)", new: "len($g) >= 0*$limit || strings.ContainsFunc($g, $bad)", run: "^TestFairQueues$",
		},
		{
			rule: "SinkForm", what: "a text that SQS refuses is sent",
			in: "lambda/sink.text", old: "unsendable.Replace(string($args))", new: "string($args)", run: "^TestCharactersThatQueuesDoNotTake$",
		},
		{
			rule: "SinkForm", what: "a job goes out without its id",
			in: "lambda/sink.attributes", old: "lambda.KeyAttribute: text(kind, m.job)", new: "lambda.KeyAttribute: text(kind, m.kind)", run: "^TestFairQueues$",
		},
		{
			rule: "SinkForm", what: "an event and an invocation go out without the job's id", in: "lambda/sink.payload", old: "Key: $d.JobID,", new: "", run: "^TestPartOfACallFails$",
		},
		{
			rule: "SinkBlame", what: "SQS's codes aren't known by their older names",
			in: "lambda/sink.codes.of", old: `$code = strings.TrimPrefix($code, "AWS.SimpleQueueService.")`, new: `$code = strings.TrimPrefix($code, "AWS.None.")`, run: "^(TestCallFails|TestPartOfACallFails)$",
		},
		{
			rule: "SinkOnce", what: "an execution of another input counts as the job's",
			in: "lambda/sink.StateMachine.start", old: "return $m.compare($ctx, $input, $name)", new: "return nil", run: "^TestExecutionOfAnotherInput$",
		},
		{
			rule: "SinkOnce", what: "a job that comes again, and whose execution has ended, is parked",
			in: "lambda/sink.StateMachine.compare", old: "$was.Key == $is.Key", new: "$was.Key != $is.Key", run: "^TestJobStartsOneExecution$",
		},
		{
			rule: "SinkOnce", what: "an express workflow, which forgets names, takes jobs",
			in: "lambda/sink.StateMachine.keepsNames", old: "case $out.Type != types.StateMachineTypeStandard:", new: "case false:", run: "^TestStateMachineThatTakesNothing$",
		},
		{
			rule: "SinkOnce", what: "a durable execution has no name, and starts again with the job",
			in: "lambda/sink.Function.invoke", old: "$in.DurableExecutionName = aws.String(executionName($d.JobID))", new: "_ = aws.String(executionName($d.JobID))",
			run: "^TestJobStartsOneDurableExecution$",
		},
		{
			rule: "SinkOnce", what: "the name of an execution is longer than a service takes",
			in: "internal/base/awsname.Of", old: "len($id) <= $limit", new: "len($id) <= 2*$limit", run: "^TestNames$",
		},
	}
}
