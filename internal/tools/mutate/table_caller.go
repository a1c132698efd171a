package main

// waitMutants break how a request waits for another one with its key.
func waitMutants() []mutant {
	const inFlight = "idem/inflight.go"
	return []mutant{
		{
			rule: "WaitEnds", what: "waiting ignores the client's context",
			file: inFlight, old: "!sleep(ctx, next)", new: "!sleep(context.WithoutCancel(ctx), next)", run: "^TestWaitingEndsWithItsClient$",
		},
		{
			rule: "WaitBacksOff", what: "who waits looks as often in the tenth second as in the first",
			file: inFlight, old: "pace = min(pace*2, time.Second)", new: "pace = firstLook", run: "^TestWaitingBacksOff$",
		},
		{
			rule: "RetryAfterCap", what: "a client is told to wait for the end of the lease",
			file: inFlight, old: "return min(max(held.Lease.Sub(a.opt.Now()), time.Second), a.opt.MaxRetryAfter)",
			new: "return max(held.Lease.Sub(a.opt.Now()), time.Second)", run: "^TestRetryAfterIsCapped$",
		},
		{
			rule: "RetryAfterCap", what: "idem/client gives up on a request in flight after two more tries",
			file: "idem/client/operation.go", old: "\t\to.waits++\n", new: "", run: "^TestRequestInFlightIsWaitedFor$",
		},
		{
			rule: "RetryAfterCap", what: "idem/client waits for a request in flight for ever",
			file: "idem/client/operation.go", old: "\t\to.waited += wait\n", new: "", run: "^TestRequestInFlightIsWaitedFor$",
		},
	}
}

// panicMutants break what becomes of a handler's panic.
func panicMutants() []mutant {
	const crash = "lambda/process.go"
	return []mutant{
		{
			rule: "PanicAnswered", what: "a panic cuts the connection",
			file: "idem/serve.go", old: "e.catching(r.Route, fn, &caught)", new: "fn", run: "^TestPanicAfterTheAnswer$",
		},
		{
			rule: "PanicEnds", what: "a process whose handler has panicked goes on",
			file: crash, old: "if c.value == nil || runtimeAPI() == \"\" {", new: "if runtimeAPI() != \"x\" {", run: "^TestStart$",
		},
		{
			rule: "PanicEnds", what: "a process ends before the panic is answered",
			file: crash, old: "\t\terr = post(ctx, \"response\", out)\n", new: "", run: "^TestStart$",
		},
		{
			rule: "PanicSilent", what: "a panic's value goes into the log and into the record",
			file: "idem/errtext.go", old: "fmt.Sprintf(\"panicked with a %T\", value)", new: "fmt.Sprintf(\"panicked: %v\", value)", run: "^TestPanicIsAnswered$",
		},
		{
			rule: "PanicSilent", what: "the runtime writes a panic's value to the log",
			file: crash, old: "panic(panicked(c.value))", new: "panic(c.value)", run: "^TestStart$",
		},
		{
			rule: "PanicEnds", what: "a panic behind Handle is swallowed in a function",
			file: crash, old: "case runtimeAPI() != \"\":", new: "case runtimeAPI() == \"x\":", run: "^TestPanicOfHandleInAFunctionGoesOn$",
		},
	}
}

// callerMutants break how callers are told apart.
func callerMutants() []mutant {
	const scope, adapter, cred, state = "idem/scope.go", "lambda/adapter.go", "idem/credentials.go", "idem/state.go"
	const every = "^TestOtherCredentialsOnEveryPath$"
	return []mutant{
		{
			rule: "Credentials", what: "another caller is taken for the first one",
			file: state, old: "\tcase !same.caller:\n\t\treturn otherCaller\n", new: "", run: every,
		},
		{
			rule: "Credentials", what: "another caller of another request learns that it is another",
			file: state, old: "\tcase !same.caller:\n\t\treturn otherCaller\n\tcase !same.request:\n\t\treturn mismatch\n",
			new: "\tcase !same.request:\n\t\treturn mismatch\n\tcase !same.caller:\n\t\treturn otherCaller\n", run: "^TestJudgeExhaustively$",
		},
		{
			rule: "Credentials", what: "credentials aren't stored",
			file: "idem/claim.go", old: "\t\tcred, _ = a.opt.Fingerprint.sign(a.cred)\n", new: "", run: every,
		},
		{
			rule: "Credentials", what: "who asks for the status of another caller's operation is told",
			file: "idem/status.go", old: "\ta.identify(anonymous)\n", new: "\ta.identify(anonymous && scope != \"\")\n", run: every,
		},
		{
			rule: "Credentials", what: "what is presented doesn't count",
			file: cred, old: "\t\tif len(values) > 0 {", new: "\t\tif len(values) > 9 {", run: "^TestOtherCredentialsAreRefused$",
		},
		{
			rule: "Credentials", what: "one header passes for another",
			file: cred, old: "appendTagged(b, 'n', strings.ToLower(name))", new: "b", run: "^TestCredentialsKnowTheirHeader$",
		},
		{
			rule: "CredentialsHost", what: "the host doesn't count",
			file: cred, old: "appendTagged(b, 'o', strings.ToLower(host))", new: "appendTagged(b, 'o', \"\")", run: "^TestOtherCredentialsAreRefused$",
		},
		{
			rule: "CredentialsHost", what: "the host before a proxy doesn't count",
			file: cred, old: "\tb = appendTagged(b, 'f', ", new: "\t_ = appendTagged(b, 'f', ", run: "^TestOtherCredentialsAreRefused$",
		},
		{
			rule: "CredentialsAtRest", what: "credentials can be guessed from the table alone",
			file: cred, old: "hmac.New(sha256.New, []byte(r.Key))", new: "hmac.New(sha256.New, nil)", run: "^TestCredentialsAtRest$",
		},
		{
			rule: "OldCredentials", what: "records from before credentials were stored replay to nobody",
			file: cred, old: "if a.anonymous && held.Cred != \"\" {", new: "if a.anonymous {", run: "^TestRecordsWithoutCredentialsReplay$",
		},
		{
			rule: "TenantScope", what: "two tenants share the keys of nobody in particular",
			file: scope, old: "\treturn tenantScope(r, \"\"), true, nil\n", new: "\treturn \"\", true, nil\n", pkg: "lambda", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "two tenants share the keys of a verified caller",
			file: scope, old: "return tenantScope(r, r.Identity.Kind+\":\"+r.Identity.Subject), false, nil", new: "return r.Identity.Kind + \":\" + r.Identity.Subject, false, nil",
			pkg: "lambda", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "the tenant of an invocation doesn't reach the engine",
			file: adapter, old: "\tif req.Tenant == \"\" {\n\t\treq.Tenant = tenantOf(ctx)\n\t}\n", new: "", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "a direct invocation has no tenant",
			file: "lambda/scope.go", old: "\t\tscope = join(tenant, scope)\n", new: "\t\t_ = join(tenant, scope)\n", run: "^TestTenantsOfDirectInvocations$",
		},
		{
			rule: "TenantName", what: "a tenant's name may hold what ends it",
			file: scope, old: "escapeFirst.Replace(r.Tenant)", new: "r.Tenant", pkg: "lambda", run: "^TestTenantsNamesDontRunTogether$",
		},
	}
}
