package main

// operationMutants break the rules about what a key names: the handler's operation,
// and the work, however often it is delivered.
func operationMutants() []mutant {
	const operation = "^(TestTwoDirectHandlers|TestTwoConsumers|TestHandlersThatShare|TestAFormerNames|TestTheOperationIs|TestRoutesThatSkip)"
	const redrive = "^(TestARedriveIs|TestCallsUnder|TestWithScope)"
	return []mutant{
		{
			rule: "OwnKeys", what: "an operation isn't part of the scope",
			file: "idem/scope.go", old: "\tif err == nil && r.Operation != \"\" {", new: "\tif err == nil && r.Operation == \"-\" {", pkg: "lambda", run: operation,
		},
		{
			rule: "OwnKeys", what: "a Direct handler's name isn't its operation",
			file: "lambda/direct.go", old: ", req.Operation = h.opt.Name, h.operation", new: " = h.opt.Name", run: operation,
		},
		{
			rule: "OwnKeys", what: "a batch's name isn't its operation",
			file: "lambda/task.go", old: "t.req.Redelivered, t.req.Operation = true, h.batch.Name", new: "t.req.Redelivered = true", run: operation,
		},
		{
			rule: "OwnKeys", what: "a handler that gets a name loses its keys",
			file: "lambda/wrap.go", old: "\tif o.Operation == Unnamed {\n\t\treturn \"\"", new: "\tif o.Operation == Unnamed {\n\t\treturn o.Name", run: operation,
		},
		{
			rule: "SharedKeys", what: "two handlers without a name share their keys",
			file: "idem/handlers.go", old: "case e.handlers.operation[op] || name == \"\" &&", new: "case name == \"\" &&", pkg: "lambda", run: operation,
		},
		{
			rule: "SharedKeys", what: "two handlers with one name share their keys",
			file: "idem/handlers.go", old: "case e.handlers.operation[op] && name != \"\":", new: "case name == \"\\x00\":", pkg: "lambda", run: operation,
		},
		{
			rule: "SharedKeys", what: "a second Direct isn't noticed",
			file: "lambda/wrap.go", old: "\tif err == nil && a.typed {", new: "\tif err != nil && a.typed {", run: operation,
		},
		{
			rule: "SharedKeys", what: "a second handler of records isn't noticed",
			file: "lambda/each.go", old: "err = e.AddOperation(reflect.TypeFor[Rec]().String(), b.Name)", new: "_ = reflect.TypeFor[Rec]()", run: operation,
		},
		{
			rule: "SharedKeys", what: "handlers of two engines on one store share their keys",
			file: "idem/handlers.go", old: "name == \"\" && e.unnamedElsewhere(e.opt.Namespace+\" \"+kind):", new: "name == \"\" && e == nil:", pkg: "dynamo", run: "^TestTwoEnginesWithTheSameKeysOnOneStore$",
		},
		{
			rule: "SharedKeys", what: "handlers of two functions share a scope without a name",
			file: "lambda/wrap.go", old: "a.ownScope && cmp.Or", new: "a.ownScope && e == nil && cmp.Or", pkg: "lambda", run: "^TestHandlersThatShareKeysPanic$",
		},
		{
			rule: "DeliveryKey", what: "a call is made under a message's id",
			file: "idem/flow.go", old: "\tif mayReach(f.a.req.DeliveryKey, f.record()) {", new: "\tif f != nil {", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "a job before the answer is staged under a message's id",
			file: "idem/flow_commit.go", old: "\tif err == nil && len(waiting) > 0 {", new: "\tif err == nil && f == nil {", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "what an earlier version has begun can't be finished",
			file: "idem/state.go", old: "!deliveryKey || held != nil && !held.DeliveryKey", new: "!deliveryKey", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "a second delivery slips through",
			file: "idem/claim.go", old: ", DeliveryKey: a.req.DeliveryKey,", new: ",", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "people aren't told of a refused operation",
			file: "idem/state.go", old: "ErrKeyReused, ErrDeliveryKey}", new: "ErrKeyReused}", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "a key of the work counts as a message's id",
			file: "lambda/task.go", old: "t.req.DeliveryKey && t.req.Key == h.batch.ID(rec) &&", new: "t.req.DeliveryKey &&", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "an item doesn't say that its key names a delivery",
			file: "dynamo/codec.go", old: "\t\tit[attrDeliver] = yes\n", new: "", run: "^TestConformance",
		},
		{
			rule: "DeadLetterScope", what: "a dead-letter queue has keys of its own",
			file: "lambda/sqs.go", old: "cmp.Or(m.Attributes[\"DeadLetterQueueSourceArn\"], m.EventSourceARN)", new: "cmp.Or(m.EventSourceARN)", run: redrive,
		},
		{
			rule: "NamedScope", what: "a scope of one's own doesn't count",
			file: "lambda/task.go", old: "\t\tt.req.Scope = h.batch.Scope\n", new: "", run: redrive,
		},
		{
			rule: "NamedScope", what: "two functions share a topic's messages",
			file: "lambda/task.go", old: "\t\tt.req.Scope = consumerScope(ctx, h.batch.Scope)\n", new: "\t\tt.req.Scope = h.batch.Scope\n", run: redrive,
		},
		{
			rule: "SourceOutlasts", what: "nobody is told that a source keeps a record for longer than the engine knows it",
			file: "lambda/each.go", old: "\te.AddSource(reflect.TypeFor[Rec]().String(), b.Keeps)\n", new: "", run: "^TestASourceThatOutlasts",
		},
	}
}
