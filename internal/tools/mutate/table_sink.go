package main

// sinkMutants break the verdicts that decide between a job's fault and its sink's.
func sinkMutants() []mutant {
	const round, fault, batch, sink = "lambda/sink/round.go", "lambda/sink/fault.go", "lambda/sink/batch.go", "idem/sink.go"
	return []mutant{
		{
			rule: "DownCostsACall", what: "a batching sink that is down is asked for every batch",
			file: batch, old: "\tr.down = f.blame == ofSink\n", new: "", run: "^TestSinkThatIsDownCostsACall$",
		},
		{
			rule: "DownCostsACall", what: "a function that is down is invoked for every job",
			file: "lambda/sink/function.go", old: "r.down = fault != nil && fault.blame == ofSink", new: "r.down = false", run: "^TestSinkThatIsDownCostsACall$",
		},
		{
			rule: "DownCostsACall", what: "a sink that blames itself for each entry is asked on",
			file: batch, old: "\t\tr.down = each.down()\n", new: "", run: "^TestSinkThatIsDownForAllEntriesCostsACall$",
		},
		{
			rule: "DownCostsACall", what: "a function of the program that is down is called for every job",
			file: sink, old: "down = errors.Is(errs[i], ErrSinkDown)", new: "down = false", run: "^TestSinkFuncThatIsDownIsCalledOnce$",
		},
		{
			rule: "NoEmptyEvent", what: "a job that is no JSON is handed on as an event without a payload",
			file: "lambda/sink/function.go", old: "if in.Payload == nil {", new: "if false {", run: "^TestFunctionGetsNoEmptyEvent$",
		},
		{
			rule: "UnknownRefusal", what: "a refusal that nobody documents is the sink's for ever",
			file: fault, old: "\tif status/100 == 4 {\n\t\treturn inDoubt\n", new: "\tif status/100 == 4 {\n\t\treturn ofSink\n", run: "^TestUnknownRefusals$",
		},
		{
			rule: "UnknownRefusal", what: "a sink that refuses everything parks everything",
			file: round, old: "\tif !r.taken && len(r.doubts) > 1 {\n", new: "\tif r.taken && len(r.doubts) > 1 {\n", run: "^TestUnknownRefusals$",
		},
		{
			rule: "UnknownRefusal", what: "a sink that refuses everything is asked for every job",
			file: round, old: "case r.down, !r.taken && len(r.doubts) >= maxDoubts:", new: "case r.down:", run: "^TestUnknownRefusals$",
		},
	}
}
