package main

// lookMutants break the look before the claim of a repetition, and the signs of one.
func lookMutants() []mutant {
	const pays, costs, enters, look = "^TestARetryPaysLessAndNothingElse$", "^TestCallsOfARetry$", "idem.before.enters", "idem.before.look"
	return []mutant{
		{
			rule: "LookSign", what: "a client's sign counts for nothing",
			in: enters, old: "retrysign.In($a.req.Header)", new: "retrysign.In(nil)", run: costs,
		},
		{
			rule: "LookSign", what: "what the program knows of a request counts for nothing",
			in: enters, old: "$a.opt.ReadFirst != nil && $a.opt.ReadFirst($a.req)", new: "false", run: "^TestSignsOfARetry$",
		},
		{
			rule: "LookSign", what: "a first attempt that is counted is taken for a retry",
			in: "internal/base/retrysign.Above", old: "return $n > $first", new: "return $n >= $first", run: "^TestHeaders$",
		},
		{
			rule: "LookSign", what: "a number that no attempts have counts",
			in: "internal/base/retrysign.Above", old: "if len($count) > 9 {", new: "if len($count) > 99 {", run: "^TestNoCountIsNoRetry$",
		},
		{
			rule: "LookSign", what: "the first of two headers counts",
			in: "internal/base/retrysign.In", old: "if len($values) != 1 {", new: "if len($values) == 0 {", run: "^TestNoCountIsNoRetry$",
		},
		{
			rule: "LookSign", what: "the last of two parameters counts",
			in: "internal/base/retrysign.parameter", old: `if $found { return "" }`, new: "_ = $found", run: "^TestNoCountIsNoRetry$",
		},
		{
			rule: "LookSign", what: "a fingerprint may cover a count of retries",
			in: "idem.Fingerprint.validateScheme", old: "retrysign.Is($name)", new: `retrysign.Is("")`, run: "^TestNewPanicsOnWhatCantWork$",
		},
		{
			rule: "LookSign", what: "a message's first receipt counts as another",
			in: "lambda.sqsRequest", old: `retrysign.Above($m.Attributes["ApproximateReceiveCount"], 1)`, new: `retrysign.Above($m.Attributes["ApproximateReceiveCount"], 0)`, run: "^TestGoldenBatches$",
		},
		{
			rule: "LookSign", what: "a stream's record that was done says nothing of the next",
			in: "lambda.course.run", old: "!$task.ran() && $n+1 < len($lane)", new: "!$task.ran() && $n > len($lane)", run: "^TestRecordThatComesAgainIsReadFirst$",
		},
		{
			rule: "LookSign", what: "a stream's new record says that the next comes again",
			in: "lambda.course.run", old: "!$task.ran() && $n+1 < len($lane)", new: "$n+1 < len($lane)", run: "^TestRecordThatComesAgainIsReadFirst$",
		},
		{
			rule: "LookSign", what: "a provider's mark of a repeated delivery counts for nothing",
			in: "idem/webhook.Handler.handle", old: "ReadFirst: retrysign.In($r.Header),", new: "ReadFirst: retrysign.In(nil),", run: "^TestSameEvent$",
		},
		{
			rule: "LookSign", what: "the client marks no retry of an earlier process",
			in: "idem/client.operation.header", old: "$o.attempts + $o.before", new: "$o.attempts", run: "^TestRetriesSaySo$",
		},
		{
			rule: "LookSign", what: "the client marks requests without a key",
			in: "idem/client.operation.header", old: `$n > 0 && $o.key != ""`, new: "$n > 0", run: "^TestRetriesSaySo$",
		},
		{
			rule: "LookFails", what: "a record that can't be opened decides",
			in: "idem.before.glance", where: "$rec, $err := $a.either($ctx)", old: "return nil, $err", new: "return $rec, nil", pkg: "dynamo", run: "^TestBadInput26FailOpenRunsNothing$",
		},
		{
			rule: "LookFails", what: "a take-over after a look takes the time of the answer",
			in: look, old: "earlier($a.unbegun, time.Now().Add(maxClaim))", new: "earlier($a.deadline, time.Now().Add(maxClaim))", run: "^TestSlowTakeOverAfterALook$",
		},
		{
			rule: "LookFreed", what: "a freed record that was read refuses the claim",
			in: look, old: "$a.freed = $held", new: "_ = $held.PK", run: costs,
		},
		{
			rule: "LookQuota", what: "a retry over its quota reads the record twice",
			in: "idem.before.admit", old: "case $a.looked:", new: "case $a.looked && $a.away:", run: costs,
		},
		{
			rule: "LookBeside", what: "a key that is free at its other place counts against another caller's quota",
			in: look, old: "$a.away { $a.turn() }", new: "$a.away { _ = $a.pk }", run: "^TestQuotaOfARetryIsItsCallers$",
		},
		{
			rule: "LookBeside", what: "the record at the key's other place is judged as its own",
			in: look, old: "if $a.beside != nil && $rec.PK == $a.beside.pk { $a.turn() }", new: "", run: costs,
		},
		{
			rule: "LookBeside", what: "another request in its own place hides a retry's record at the other",
			in: look, old: "if $v == state.Mismatch && !$a.away {", new: "if $v == state.Mismatch && $a.away {", run: "^TestLookAtTwoOperationsOfAKey$",
		},
	}
}
