package main

// shareMutants break how the records of an event share its time, and what becomes of
// a handler that doesn't come back.
func shareMutants() []mutant {
	const left = "^TestOverdueHandlerIsLeftBehind$"
	return []mutant{
		{
			rule: "FairShare", what: "a record takes all the time there is, though others wait",
			in: "lambda.share", old: "if $t.behind == 0 {", new: "if $t.behind >= 0 {", run: "^TestRecordsShareTheTime$",
		},
		{
			rule: "FairShare", what: "a share has no floor",
			in: "lambda.share", old: "max($fair, 2*$reserve)", new: "$fair", run: "^TestShare$",
		},
		{
			rule: "FairShare", what: "the longest lane that waits is not thought of",
			in: "lambda.turn.rounds", old: "return $t.longest + ($t.behind-$t.longest+$t.workers-1)/$t.workers", new: "return ($t.behind + $t.workers - 1) / $t.workers",
			run: "^TestShare$",
		},
		{
			rule: "FairShare", what: "one record after the other by default",
			in: "lambda.course.queue", old: "$c.workers = defaultConcurrency", new: "$c.workers = 1", run: "^TestConcurrency$",
		},
		{
			rule: "RecordTimeout", what: "a record's own limit is not kept",
			in: "lambda.task.enter", old: "if $t.limit > 0 {", new: "if $t.limit < 0 {", run: "^TestRecordTimeout$",
		},
		{
			rule: "NotBegun", what: "a record is begun with hardly any time left",
			in: "lambda.course.run", old: "time.Until($end) < least($reserve)", new: "time.Until($end) < 0", run: "^TestNoTimeLeft$",
		},
		{
			rule: "NotBegun", what: "a handler begins after its time, its claim having taken that",
			in: "lambda.task.enter", old: "case $ctx.Err() != nil || passed($t.lane):", new: "case $ctx.Err() != nil:", run: "^TestSlowClaimDoesNotBeginTheHandler$",
		},
		{
			rule: "NotBegun", what: "what was not tried is told as a failure",
			in: "lambda.course.came", old: "case $t.came != nil && !$t.untried($t.came):", new: "case $t.came != nil:", run: "^TestSlowClaimDoesNotBeginTheHandler$",
		},
		{
			rule: "Overdue", what: "the rest of a group goes on beside a handler that has not come back",
			in: "lambda.course.run", old: `if !$ended || $task.came != nil && $task.group != "" {`, new: `if $ended && $task.came != nil && $task.group != "" {`, run: left,
		},
		{
			rule: "Overdue", what: "the report goes out without what a handler has done, which is being stored",
			in: "lambda.course.report", old: "if $t.giveUp() {", new: "if $t.handler.Swap(overdue) != overdue {", run: "^TestReportWaitsForWhatIsBeingStored$",
		},
		{
			rule: "Overdue", what: "a process is frozen with a handler in it",
			in: "lambda.EachHandler.Invoke", old: "startAnew($ctx, $out, $err)", new: "", run: "^TestProgramBeginsAnewWithoutAnOverdueHandler$",
		},
		{
			rule: "Overdue", what: "Handle leaves a handler in a process that is frozen",
			in: "lambda.EachHandler.Handle", old: "if $overdue > 0 && freezes() { panic(", new: "if $overdue < 0 && freezes() { panic(",
			run: "^TestOverdueHandlerOfHandleInAFunctionEndsIt$",
		},
		{
			rule: "Overdue", what: "the program begins anew and takes other invocations along",
			in: "lambda.freezes", old: "lambdacontext.MaxConcurrency() <= 1", new: "lambdacontext.MaxConcurrency() >= 1",
			run: "^TestProgramBeginsAnewWithoutAnOverdueHandler$",
		},
		{
			rule: "Overdue", what: "the program begins anew without an answer",
			in: "lambda.startAnew", old: "$err := post($ctx, $kind, $answer)", new: "$err := $ctx.Err(); _ = $kind", run: "^TestProgramBeginsAnewWithoutAnOverdueHandler$",
		},
	}
}
