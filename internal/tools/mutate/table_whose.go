package main

// whoseMutants break the rules about who completes an operation.
func whoseMutants() []mutant {
	const resumer, whose, router = "lambda/completer/resumer.go", "^(TestFunctionsOnOneTable|TestRenamedFunction|TestTenantsOperationIsCompletedForIt)$", "^TestRouter"
	return []mutant{
		{
			rule: "AllowList", what: "a ticket for a function that isn't on the list goes to those that are",
			file: resumer, old: "\tif t.Function == \"\" {\n", new: "\tif t.PK != \"\" {\n", run: "^TestTicketsGoToTheirFunction$",
		},
		{
			rule: "AllowList", what: "the alias of the list isn't the one that is invoked",
			file: resumer, old: "all[name] = &function{api, f}", new: "all[name] = &function{api, name}", run: "^TestTicketsGoToTheirFunction$",
		},
		{
			rule: "NotMineKept", what: "a ticket whose handler isn't found is dropped",
			file: "lambda/completer/handler.go", old: "\tcase TicketNotMine:\n", new: "\tcase \"nobody's\":\n", run: "^TestOutcomes$",
		},
		{
			rule: "NotMineKept", what: "a ticket whose handler isn't found is dropped after a while",
			file: "lambda/completer/handler.go", old: "min(t.Tries+1, h.opt.MaxTries-1)", new: "t.Tries + 1", run: "^TestOutcomes$",
		},
		{
			rule: "NotMineKept", what: "a function that is gone is a failed try",
			file: resumer, old: "if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone {", new: "if _, gone := errors.AsType[*types.ResourceNotFoundException](err); gone && out != nil {", run: "^TestInvoke$",
		},
		{
			rule: "TicketTenant", what: "a function is invoked without the ticket's tenant",
			file: resumer, old: "\tif t.Tenant != \"\" {\n", new: "\tif t.PK == \"\" {\n", run: "^TestTicketIsResumedForItsTenant$",
		},
		{
			rule: "TicketTenant", what: "a job's function is invoked without its tenant",
			file: "lambda/sink/function.go", old: "\tif d.Tenant != \"\" && !f.opt.WithoutTenant {", new: "\tif f.api == nil {", run: "^TestFunctionIsInvokedForTheJobsTenant$",
		},
		{
			rule: "TicketAddress", what: "a ticket doesn't say to which function it is to go",
			file: "idem/ticket.go", old: "Function: r.Handler.Function, Tenant: r.Tenant}", new: "Tenant: r.Tenant}", pkg: "dynamo", run: "^TestTicketsAndJobsAreAddressed$",
		},
		{
			rule: "TicketAddress", what: "a job doesn't say whose it is",
			file: "dynamo/fold.go", old: "\t\tTenant: r.Tenant,\n", new: "", run: "^TestTicketsAndJobsAreAddressed$",
		},
		{
			rule: "TakeOverNames", what: "a client's retry leaves the operation to the handler that it was of",
			file: "idem/claim.go", old: "\tnext.Handler, next.Tenant = a.handler(), a.req.Tenant", new: "\tnext.Handler, next.Tenant = next.Handler, a.req.Tenant", run: "^TestTakeOverByAClientNamesItsHandler$",
		},
		{
			rule: "SecondWrap", what: "two handlers without a name are on one engine",
			file: "idem/handlers.go", old: "case e.handlers.name[name] || name", new: "case name", pkg: "lambda", run: "^TestSecondWrapOnAResumableEnginePanics$",
		},
		{
			rule: "SecondWrap", what: "two engines of a process have a handler without a name each",
			file: "idem/handlers.go", old: "return ok && s.AddUnnamed(among) > 1", new: "return ok && s.AddUnnamed(among) < 0", pkg: "dynamo", run: "^TestTwoEnginesWithoutNamesOnOneStore$",
		},
		{
			rule: "RouteName", what: "a route's records don't name it",
			file: "lambda/wrap.go", old: "\treq.Handler.Name = h.opt.Name\n", new: "", run: router,
		},
		{
			rule: "RouteName", what: "a router completes in the first of its routes",
			file: "lambda/router.go", old: "\tt := r.named(req.Handler)\n\tif t == nil {\n", new: "\tt := r.keyed[0]\n\tif t == nil {\n", run: router,
		},
		{
			rule: "RouterEngines", what: "a router asks the first of its engines only",
			file: "lambda/router.go", old: "\t\tif asked[e] {\n", new: "\t\tif len(asked) > 0 {\n", run: router,
		},
		{
			rule: "InvokedFor", what: "an operation is completed in another tenant's invocation",
			file: "lambda/wrap.go", old: "o.Handlers, o.Tenant = names, tenantOf(ctx)", new: "o.Handlers, o.Tenant = names, \"jane\"", run: whose,
		},
	}
}
