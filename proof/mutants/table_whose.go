package main

// whoseMutants break the rules about who completes an operation.
func whoseMutants() []mutant {
	const whose, router = "^(TestFunctionsOnOneTable|TestRenamedFunction|TestTenantsOperationIsCompletedForIt)$", "^TestRouter"
	return []mutant{
		{
			rule: "AllowList", what: "a ticket for a function that isn't on the list goes to those that are",
			in: "lambda/completer.Functions.Resume", where: "$ctx context.Context, $t jobs.Ticket", old: `$f[$t.Function]; $r != nil {`, new: `$f[$t.Function]; $r == nil { for _, one := range $f { return one.Resume($ctx, $t) } } else {`, run: "^TestTicketsGoToTheirFunction$",
		},
		{
			rule: "AllowList", what: "the alias of the list isn't the one that is invoked",
			in: "lambda/completer.Invoke", old: "$all[$name] = &function{$api, $f}", new: "$all[$name] = &function{$api, $name}", run: "^TestTicketsGoToTheirFunction$",
		},
		{
			rule: "NotMineKept", what: "a ticket whose handler isn't found ends, and nobody hears of it",
			in: "lambda/completer.Handler.after", old: "case TicketNotMine:", new: `case "nobody's":`, run: "^TestOutcomes$",
		},
		{
			rule: "NotMineKept", what: "tickets whose handler isn't found multiply",
			in: "lambda/completer.Handler.ended", old: `$h.opt.Listed($ctx, $t, $why); $err != nil {`, new: `$h.opt.Listed($ctx, $t, $why); $err != nil || true {`, run: "^TestOutcomes$",
		},
		{
			rule: "NotMineKept", what: "a function that is gone is a failed try",
			in: "lambda/completer.function.Resume", where: "$out, $err := $f.api.Invoke",
			old: "if _, $gone := errors.AsType[*types.ResourceNotFoundException]($err); $gone {",
			new: "if _, $gone := errors.AsType[*types.ResourceNotFoundException]($err); $gone && $out != nil {", run: "^TestInvoke$",
		},
		{
			rule: "TicketTenant", what: "a function is invoked without the ticket's tenant",
			in: "lambda/completer.function.Resume", old: `if $t.Tenant != "" {`, new: `if $t.PK == "" {`, run: "^TestTicketIsResumedForItsTenant$",
		},
		{
			rule: "TicketTenant", what: "a job's function is invoked without its tenant",
			in: "lambda/sink.Function.invoke", old: `if $d.Tenant != "" && !$f.opt.WithoutTenant {`, new: "if $f.api == nil {",
			run: "^TestFunctionIsInvokedForTheJobsTenant$",
		},
		{
			rule: "TicketAddress", what: "a ticket doesn't say to which function it is to go",
			in: "idem/jobs.TicketFor", old: "Function: $r.Handler.Function, Tenant: $r.Tenant}", new: "Tenant: $r.Tenant}", pkg: "dynamo/stream", run: "^TestTicketsAndJobsAreAddressed$",
		},
		{
			rule: "TicketAddress", what: "a job doesn't say whose it is",
			in: "dynamo/stream.todo.delivery", old: "Tries: $job.Tries, Tenant: $r.Tenant", new: "Tries: $job.Tries", run: "^TestTicketsAndJobsAreAddressed$",
		},
		{
			rule: "TakeOverNames", what: "a client's retry leaves the operation to the handler that it was of",
			in: "internal/state.TakenByClient", old: "$r.Input, $r.Handler = $in, $by",
			new: "$r.Input = $in", pkg: "idem", run: "^TestTakeOverByAClientNamesItsHandler$",
		},
		{
			rule: "SecondWrap", what: "two handlers with one name are on one engine",
			in: "idem.Engine.AddHandler", old: "case $e.handlers.name[$name]:", new: "case false:", pkg: "lambda", run: "^TestHandlersThatShareKeysPanic$",
		},
		{
			rule: "SecondWrap", what: "a handler of a Resumable engine needs no name",
			in: "idem.Engine.AddHandler", old: `case $name == "":`, new: "case false:", pkg: "lambda", run: "^TestHandlersThatShareKeysPanic$",
		},
		{
			rule: "SecondWrap", what: "two engines of a process have a handler of one kind without a name each",
			in: "idem.unnamedElsewhere", old: "return $ok && $s.AddUnnamed($among) > 1", new: "return $ok && $s.AddUnnamed($among) < 0", pkg: "dynamo",
			run: "^TestTwoEnginesWithTheSameKeysOnOneStore$",
		},
		{
			rule: "RouteName", what: "a route's records don't name it",
			in: "lambda.Handler.serve", old: "$req.Handler.Name = $h.opt.Name", new: "", run: router,
		},
		{
			rule: "RouteName", what: "a router completes in the first of its routes",
			in: "lambda.Router.again", old: "$t := $r.named($req.Handler); if $t == nil {", new: "$t := $r.keyed[0]; if $t == nil {", run: router,
		},
		{
			rule: "RouterEngines", what: "a router asks the first of its engines only",
			in: "lambda.Router.resume", old: "if $asked[$e] {", new: "if len($asked) > 0 {", run: router,
		},
		{
			rule: "InvokedFor", what: "an operation is completed in another tenant's invocation",
			in: "lambda.resume", old: "$o.Handlers, $o.Tenant = $names, tenantOf($ctx)", new: `$o.Handlers, $o.Tenant = $names, "jane"`, run: whose,
		},
	}
}
