package main

// sinkMutants break the verdicts that decide between a job's fault and its sink's.
func sinkMutants() []mutant {
	return []mutant{
		{
			rule: "TraceOfJob", what: "a job doesn't carry the context of its phase",
			in: "idem.watch.traced", old: "$jobs[$i].Trace == (trace.Context{}) {", new: "$jobs[$i].Trace != (trace.Context{}) {", pkg: "idem", run: "^TestTraceOfARequest$",
		},
		{
			rule: "TraceOfJob", what: "an event with other members counts as a job",
			in: "lambda.isJob", old: "len($m) == $known", new: "len($m) >= $known", pkg: "lambda", run: "^TestTraceContextMakesNoJob$",
		},
		{
			rule: "TraceOfRecord", what: "a record names no first attempt",
			in: "idem.watch.operate", old: "$a.course.own.Parent = $own.Parent", new: "", pkg: "idem", run: "^TestTraceOfAResumedRequest$",
		},
		{
			rule: "OneSuspect", what: "a sink that refuses everything parks each job that comes alone",
			in: "lambda/sink.evidence.suspects", old: "$job != $e.suspect", new: "false", run: "^TestRefusedAloneThereIsOneSuspect$",
		},
		{
			rule: "OneSuspect", what: "an accepted job is no evidence for the next round",
			in: "lambda/sink.round.verdicts", old: "$r.past.accepts()", new: "", run: "^TestRefusedAloneThereIsOneSuspect$",
		},
		{
			rule: "DownCostsACall", what: "a batching sink that is down is asked for every batch",
			in: "lambda/sink.batcher.send", old: "$r.down = $f.blame == ofSink", new: "", run: "^(TestCallFails|TestPartOfACallFails)$",
		},
		{
			rule: "DownCostsACall", what: "a function that is down is invoked for every job",
			in: "lambda/sink.oneByOne.deliver", old: "$r.down = $f != nil && $f.blame == ofSink", new: "$r.down = false", run: "^(TestCallFails|TestPartOfACallFails)$",
		},
		{
			rule: "DownCostsACall", what: "a sink that blames itself for each entry is asked on",
			in: "lambda/sink.batcher.send", old: "$r.down = $each.down()", new: "", run: "^TestPartOfACallFails$",
		},
		{
			rule: "DownCostsACall", what: "a function of the program that is down is called for every job",
			in: "idem/jobs.SinkFunc.Deliver", old: "$down = errors.Is($errs[$i], ErrSinkDown)", new: "$down = false", run: "^TestSinkFuncThatIsDownIsCalledOnce$",
		},
		{
			rule: "NoEmptyEvent", what: "a job that is no JSON is handed on as an event without a payload",
			in: "lambda/sink.Function.invoke", old: "if $in.Payload == nil {", new: "if false {", run: "^TestFunctionGetsNoEmptyEvent$",
		},
		{
			rule: "UnknownRefusal", what: "a refusal that nobody documents is the sink's for ever",
			in: "lambda/sink.classes", old: "if $status/100 == 4 { return inDoubt", new: "if $status/100 == 4 { return ofSink", run: "^(TestCallFails|TestBlameByStatus)$",
		},
		{
			rule: "UnknownRefusal", what: "a sink that refuses everything parks everything",
			in: "lambda/sink.round.verdicts", old: "if $n > 0 || !$r.past.suspects($r.batch[$i].JobID) {", new: "if $n < 0 {", run: "^(TestCallFails|TestBlameByStatus)$",
		},
		{
			rule: "UnknownRefusal", what: "a sink that refuses everything is asked for every job",
			in: "lambda/sink.round.over", old: "case $r.down, !$r.taken && len($r.doubts) >= maxDoubts:", new: "case $r.down:", run: "^(TestCallFails|TestBlameByStatus)$",
		},
	}
}
