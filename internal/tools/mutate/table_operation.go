package main

// operationMutants break the rules about what a key names: the handler's operation,
// and the work, however often it is delivered.
func operationMutants() []mutant {
	const operation = "^(TestTwoDirectHandlers|TestTwoConsumers|TestHandlersThatShare|TestAFormerNames|TestTheOperationIs|TestRoutesThatSkip)"
	return []mutant{
		{
			rule: "OwnKeys", what: "an operation isn't part of the scope",
			file: "idem/scope.go", old: "\tif err == nil && r.Operation != \"\" {", new: "\tif err == nil && r.Operation == \"-\" {", pkg: "lambda", run: operation,
		},
		{
			rule: "OwnKeys", what: "a Direct handler's name isn't its operation",
			file: "lambda/typed.go", old: ", req.Operation = h.opt.Name, h.opt.operation()", new: " = h.opt.Name", run: operation,
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
	}
}
