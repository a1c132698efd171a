package main

// waitMutants break how a request waits for another one with its key.
func waitMutants() []mutant {
	return []mutant{
		{
			rule: "WaitEnds", what: "waiting ignores the client's context",
			in: "idem.attempt.wait", old: "!sleep($ctx, $next)", new: "!sleep(context.WithoutCancel($ctx), $next)", run: "^TestWaitingEndsWithItsClient$",
		},
		{
			rule: "WaitBacksOff", what: "who waits looks as often in the tenth second as in the first",
			in: "idem.nextLook", old: "min(firstLook+max($waited, $age/10), longestLook)", new: "firstLook", run: "^TestWaitingBacksOff$",
		},
		{
			rule: "WaitBacksOff", what: "who comes late to a long operation reads as if it had just begun",
			in: "idem.nextLook", old: "max($waited, $age/10)", new: "$waited", run: "^TestWaitingIsNoLater$",
		},
		{
			rule: "WaitTakesOver", what: "the end of the holder's lease changes no wait",
			in: "idem.nextLook", old: "if $lease > 0 && $lease < $most {", new: "if $lease < 0 && $lease < $most {", run: "^TestWaitingReadsAfterTheLease$",
		},
		{
			rule: "WaitBacksOff", what: "a lease that has ended makes waiters read without a wait",
			in: "idem.nextLook", old: "$lease > 0 && $lease < $most", new: "$lease < $most", run: "^TestNextLook$",
		},
		{
			rule: "WaitersApart", what: "who waits for the same attempt reads at the same time",
			in: "idem.attempt.wait", old: "chance.N($ctx, $most-$least)", new: "min(chance.N($ctx, $most-$least), 0)", run: "^TestWaitersReadApart$",
		},
		{
			rule: "RetryAfterCap", what: "a client is told to wait for the end of the lease",
			in: "idem.reply.retryAfter", old: "return min(max($held.Lease.Sub($a.opt.Now()), time.Second), $a.opt.MaxRetryAfter)",
			new: "return max($held.Lease.Sub($a.opt.Now()), time.Second)", run: "^TestRetryAfterIsCapped$",
		},
		{
			rule: "RetryAfterCap", what: "idem/client gives up on a request in flight after two more tries",
			in: "idem/client.operation.mayRetry", old: "$o.waits++", new: "", run: "^TestRequestInFlightIsWaitedFor$",
		},
		{
			rule: "RetryAfterCap", what: "idem/client waits for a request in flight for ever",
			in: "idem/client.operation.mayRetry", old: "$o.waited += $wait", new: "", run: "^TestRequestInFlightIsWaitedFor$",
		},
	}
}

// panicMutants break what becomes of a handler's panic.
func panicMutants() []mutant {
	return []mutant{
		{
			rule: "PanicAnswered", what: "a panic cuts the connection",
			in: "idem.Engine.Serve", old: "$e.catching($r.Route, $fn, &$caught)", new: "$fn", run: "^TestPanicAfterTheAnswer$",
		},
		{
			rule: "PanicEnds", what: "a process whose handler has panicked goes on",
			in: "lambda.invoke", old: `if $c.value != nil && runtimeAPI() != "" {`, new: `if $c.value != nil && runtimeAPI() == "x" {`, run: "^TestStart$",
		},
		{
			rule: "PanicEnds", what: "a process ends before the panic is answered",
			in: "lambda.crash.ends", old: `$err = post($ctx, "response", $out)`, new: "", run: "^TestStart$",
		},
		{
			rule: "PanicSilent", what: "a panic's value goes into the log and into the record",
			in: "internal/base/redact.Panic", old: `fmt.Sprintf("panicked with a %T", $value)`, new: `fmt.Sprintf("panicked: %v", $value)`, pkg: "idem", run: "^TestPanicIsAnswered$",
		},
		{
			rule: "PanicSilent", what: "the runtime writes a panic's value to the log",
			in: "lambda.crash.ends", old: "panic(panicked($c.value))", new: "panic($c.value)", run: "^TestStart$",
		},
		{
			rule: "PanicEnds", what: "a panic behind Handle is swallowed in a function",
			in: "lambda.crashed", old: `case runtimeAPI() != "":`, new: `case runtimeAPI() == "x":`, run: "^TestPanicOfHandleInAFunctionGoesOn$",
		},
	}
}

// callerMutants break whose a key is.
func callerMutants() []mutant {
	const every = "^TestCallerOfEveryAttempt$"
	return []mutant{
		{
			rule: "Nobody", what: "who isn't verified is a caller like everybody",
			in: "idem.nobody", old: `case $id.Kind == "" && $id.Subject == "":`, new: `case $id.Kind == "-" && $id.Subject == "":`, run: "^TestNobodyIsGuessed$",
		},
		{
			rule: "Nobody", what: "operators aren't told",
			in: "idem.core.refusesNobody", old: "$e.log.ErrorContext($ctx,", new: "$e.log.DebugContext($ctx,", run: "^TestNobodyIsGuessed$",
		},
		{
			rule: "Nobody", what: "a session of a role is a caller without being asked for",
			in: "lambda.iamIdentity", where: "$id, $facts := idem.Identity", old: "$facts.Session = $userARN", new: "$id.Subject = $userARN", run: "^TestCallersByChoice$",
		},
		{
			rule: "Nobody", what: "a person of IAM Identity Center is a session like any other",
			in: "lambda.iamIdentity", old: "strings.Contains($userARN, assumedRole+identityCenter)", new: "false", run: "^TestCallersByChoice$",
		},
		{
			rule: "APIKey", what: "an API key without a person is told from others by nobody's choice",
			in: "lambda.restIdentity", where: "$caller = jwtIdentity($iss, $sub)", old: "$facts.APIKey = $id.APIKeyID", new: `$caller = idem.Identity{Kind: "apikey", Subject: $id.APIKeyID}`, run: "^TestCallersByChoice$",
		},
		{
			rule: "Certificate", what: "two CAs' certificates of one subject are one caller",
			in: "lambda.CertificateScope", old: "join($r.Facts.Issuer, $r.Facts.Certificate)", new: "$r.Facts.Certificate", run: "^TestCallersByChoice$",
		},
		{
			rule: "OneScope", what: "callers who share a scope may use guessable keys",
			in: "idem.subject.find", old: "max($e.opt.MinKey, $e.opt.oneKey)", new: "$e.opt.MinKey", run: "^TestOneScope$",
		},
		{
			rule: "OneScope", what: "whoever knows a key sees its answer without the request",
			in: "idem.attempt.status", old: `$a.whose.Kind == scope.One && $a.opt.StatusURL == ""`, new: `$a.whose.Kind == scope.One && false`, run: "^TestOneScope$",
		},
		{
			rule: "OneScope", what: "verified callers share a scope, too",
			in: "idem.scoping.callerOf", old: "$by.one && $id == store.Identity{}", new: "$by.one", run: "^TestOneScope$",
		},
		{
			rule: "OperationsCaller", what: "a completer's attempt has no caller",
			in: "idem.unattended.took", old: "_, _, $a.whose, _ = scope.Parse($rec.Scope)", new: "_ = scope.Parse", run: every,
		},
		{
			rule: "OperationsCaller", what: "a completer runs for a caller whom the handlers find in a header",
			in: "idem.Options.completable", old: "$caller.Kind != scope.Program || ", new: `$caller.Kind != scope.Program+"-" || `, run: "^TestCompleterNeedsTheCallerFromTheOperation$",
		},
		{
			rule: "TenantScope", what: "two tenants share the keys of a caller",
			in: "internal/base/scope.Append", old: "{operationPart, $operation}, {tenantPart, $tenant}", new: "{operationPart, $operation}", pkg: "lambda", run: "^TestTenantsUnderAScope$",
		},
		{
			rule: "TenantScope", what: "the tenant of an invocation doesn't reach the engine",
			in: "lambda.Adapter.request", old: `if $req.Tenant == "" { $req.Tenant = tenantOf($ctx) }`, new: "", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantName", what: "a tenant's name may hold what ends it",
			in: "internal/base/scope.Append", old: "Escape($part.name)", new: "$part.name", pkg: "lambda", run: "^TestTenantsNamesDontRunTogether$",
		},
		{
			rule: "CallerInUTF8", what: "a caller has another name in a later attempt",
			in: "idem.subject.find", old: "!utf8.ValidString($a.whose.Subject)", new: "!utf8.ValidString($a.whose.Kind)", run: "^TestCallersAreNamedInUTF8$",
		},
		{
			rule: "QueryInUTF8", what: "a resumed run reads other parameters",
			in: "idem.inText", old: "utf8.ValidString($query)", new: "utf8.ValidString($query[:0])", pkg: "dynamo", run: "^TestQueryThatIsNotUTF8IsResumed$",
		},
		{
			rule: "OwnPrefix", what: "what the program says can look like an adapter's caller",
			in: "idem.scoping.callerOf", old: "return store.Identity{Kind: scope.Program, Subject: $r.Scope}, nil",
			new: `return store.Identity{Kind: scope.Source, Subject: $r.Scope}, nil`, pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/^engine_scope$",
		},
		{
			rule: "OwnPrefix", what: "an adapter's kind can look like the program's",
			in: "idem.scoping.callerOf", old: `if $id.Subject != "" && !scope.Reserved($id.Kind) {`, new: `if $id.Subject != "" {`, pkg: "internal/testkit/enginetest", run: "^TestMemoryStore$/^engine_scope$",
		},
		{
			rule: "Issuer", what: "two authorizers' equal names are one caller",
			in: "lambda.lambdaIdentity", old: "$id.Subject = join($api, $s)", new: "$id.Subject = $s", run: "^TestCallersByChoice$",
		},
	}
}
