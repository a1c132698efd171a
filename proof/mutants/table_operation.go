package main

// operationMutants break the rules about what a key names: the handler's operation,
// and the work, however often it is delivered.
func operationMutants() []mutant {
	const operation = "^(TestTwoDirectHandlers|TestTwoConsumers|TestHandlersThatShare|TestAFormerNames|TestTheOperationIs|TestRoutesThatSkip)"
	const redrive = "^(TestARedriveIs|TestCallsUnder|TestWithScope)"
	return []mutant{
		{
			rule: "OwnKeys", what: "an operation isn't part of the scope",
			in: "internal/base/scope.Append", old: "{operationPart, $operation}, {tenantPart, $tenant}", new: "{tenantPart, $tenant}", pkg: "lambda", run: operation,
		},
		{
			rule: "OwnKeys", what: "a Direct handler's name isn't its operation",
			in: "lambda.Handler.do", old: ", $req.Operation = $h.opt.Name, $h.operation", new: "= $h.opt.Name", run: operation,
		},
		{
			rule: "OwnKeys", what: "a batch's name isn't its operation",
			in: "lambda.EachHandler.read", old: "$t.req.Redelivered, $t.req.Operation = true, $h.batch.Name", new: "$t.req.Redelivered = true", run: operation,
		},
		{
			rule: "OwnKeys", what: "a handler that gets a name loses its keys",
			in: "lambda.HandlerOptions.operation", old: `if $o.Operation == Unnamed { return ""`, new: "if $o.Operation == Unnamed { return $o.Name", run: operation,
		},
		{
			rule: "SharedKeys", what: "two handlers without a name share their keys",
			in: "idem.Engine.AddOperation", old: `case $e.handlers.operation[$op] || $name == "" &&`, new: `case $name == "" &&`, run: "^TestTwoUnnamedHandlersOfOneEngine$",
		},
		{
			rule: "SharedKeys", what: "two handlers with one name share their keys",
			in: "idem.Engine.AddOperation", old: `case $e.handlers.operation[$op] && $name != "":`, new: `case $name == "\x00":`, pkg: "lambda", run: operation,
		},
		{
			rule: "SharedKeys", what: "a second Direct isn't noticed",
			in: "lambda.wrap", old: "if $err == nil && $a.typed {", new: "if $err != nil && $a.typed {", run: operation,
		},
		{
			rule: "SharedKeys", what: "a second handler of records isn't noticed",
			in: "lambda.WrapEach", old: "$err = $e.AddOperation(reflect.TypeFor[$Rec]().String(), $b.Name)", new: "_ = reflect.TypeFor[$Rec]()", run: operation,
		},
		{
			rule: "SharedKeys", what: "handlers of two engines on one store share their keys",
			in: "idem.Engine.AddOperation", old: `$name == "" && unnamedElsewhere($e.store, $e.opt.Namespace+" "+$kind):`, new: `$name == "" && $e == nil:`, pkg: "dynamo",
			run: "^TestTwoEnginesWithTheSameKeysOnOneStore$",
		},
		{
			rule: "SharedKeys", what: "handlers of two functions share a scope without a name",
			in: "lambda.wrap", where: "$e *idem.Engine", old: "$a.ownScope && cmp.Or", new: "$a.ownScope && $e == nil && cmp.Or", pkg: "lambda",
			run: "^TestHandlersThatShareKeysPanic$",
		},
		{
			rule: "DeliveryKey", what: "a call is made under a message's id",
			in: "idem.flow.reaches", old: "if state.MayReach($f.a.req.DeliveryKey, $f.record()) {", new: "if $f != nil {", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "a job before the answer is staged under a message's id",
			in: "idem.flow.commit", where: "func ($f *flow)", old: "if len($waiting) > 0 {", new: "if len($waiting) > 0 && $f == nil {", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "what an earlier version has begun can't be finished",
			in: "internal/state.MayReach", old: "!$deliveryKey || $held != nil && !$held.DeliveryKey", new: "!$deliveryKey", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "a second delivery slips through",
			in: "idem.attempt.fresh", old: ", DeliveryKey: $a.req.DeliveryKey", new: "", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "people aren't told of a refused operation",
			in: "idem.refuses", old: "ErrKeyReused, ErrDeliveryKey, store.ErrTooLarge}", new: "ErrKeyReused, store.ErrTooLarge}", pkg: "lambda", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "a key of the work counts as a message's id",
			in: "lambda.EachHandler.read", old: "$t.req.DeliveryKey && $t.req.Key == $h.batch.ID($rec) &&", new: "$t.req.DeliveryKey &&", run: redrive,
		},
		{
			rule: "DeliveryKey", what: "an item doesn't say that its key names a delivery",
			in: "dynamo/internal/item.Fields", old: "return &$r.DeliveryKey", new: "return new($r.DeliveryKey)", pkg: "dynamo", run: "^TestConformance",
		},
		{
			rule: "DeadLetterScope", what: "a dead-letter queue has keys of its own",
			in: "lambda.sqsRequest", old: `cmp.Or($m.Attributes["DeadLetterQueueSourceArn"], $m.EventSourceARN)`, new: "cmp.Or($m.EventSourceARN)", run: redrive,
		},
		{
			rule: "NamedScope", what: "a scope of one's own doesn't count",
			in: "lambda.EachHandler.read", old: "$t.req.Source = $h.batch.Scope", new: "", run: redrive,
		},
		{
			rule: "NamedScope", what: "two functions share a topic's messages",
			in: "lambda.EachHandler.read", old: "$t.req.Source = consumerScope($ctx, $h.batch.Scope)", new: "$t.req.Source = $h.batch.Scope", run: redrive,
		},
		{
			rule: "SourceOutlasts", what: "nobody is told that a source keeps a record for longer than the engine knows it",
			in: "lambda.WrapEach", old: "$e.AddSource(reflect.TypeFor[$Rec]().String(), $b.Keeps)", new: "", run: "^TestASourceThatOutlasts",
		},
	}
}
