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
			in: "idem.attempt.wait", old: "$pace = min($pace*2, time.Second)", new: "$pace = firstLook", run: "^TestWaitingBacksOff$",
		},
		{
			rule: "RetryAfterCap", what: "a client is told to wait for the end of the lease", row: "R136 M43",
			in: "idem.attempt.retryAfter", old: "return min(max($held.Lease.Sub($a.opt.Now()), time.Second), $a.opt.MaxRetryAfter)",
			new: "return max($held.Lease.Sub($a.opt.Now()), time.Second)", run: "^TestRetryAfterIsCapped$",
		},
		{
			rule: "RetryAfterCap", what: "idem/client gives up on a request in flight after two more tries", row: "R136 M43",
			in: "idem/client.operation.mayRetry", old: "$o.waits++", new: "", run: "^TestRequestInFlightIsWaitedFor$",
		},
		{
			rule: "RetryAfterCap", what: "idem/client waits for a request in flight for ever", row: "R136 M43",
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
			in: "lambda.invoked", old: `if $c.value == nil || runtimeAPI() == "" {`, new: `if runtimeAPI() != "x" {`, run: "^TestStart$",
		},
		{
			rule: "PanicEnds", what: "a process ends before the panic is answered",
			in: "lambda.invoked", old: `$err = post($ctx, "response", $out)`, new: "", run: "^TestStart$",
		},
		{
			rule: "PanicSilent", what: "a panic's value goes into the log and into the record",
			in: "internal/redact.Panic", old: `fmt.Sprintf("panicked with a %T", $value)`, new: `fmt.Sprintf("panicked: %v", $value)`, pkg: "idem", run: "^TestPanicIsAnswered$",
		},
		{
			rule: "PanicSilent", what: "the runtime writes a panic's value to the log",
			in: "lambda.invoked", old: "panic(panicked($c.value))", new: "panic($c.value)", run: "^TestStart$",
		},
		{
			rule: "PanicEnds", what: "a panic behind Handle is swallowed in a function",
			in: "lambda.crashed", old: `case runtimeAPI() != "":`, new: `case runtimeAPI() == "x":`, run: "^TestPanicOfHandleInAFunctionGoesOn$",
		},
	}
}

// callerMutants break how callers are told apart.
func callerMutants() []mutant {
	const every = "^TestOtherCredentialsOnEveryPath$"
	return []mutant{
		{
			rule: "Credentials", what: "another caller is taken for the first one", row: "R130 M24",
			in: "internal/state.Judge", old: "case !$same.Caller: return OtherCaller", new: "", pkg: "idem", run: every,
		},
		{
			rule: "Credentials", what: "another caller of another request learns that it is another", row: "R130",
			in: "internal/state.Judge", old: "case !$same.Caller: return OtherCaller; case !$same.Request: return Mismatch",
			new: "case !$same.Request: return Mismatch; case !$same.Caller: return OtherCaller", run: "^TestJudgeExhaustively$",
		},
		{
			rule: "Credentials", what: "credentials aren't stored", row: "R130 M24",
			in: "idem.attempt.fresh", old: "$cred = hex.EncodeToString($sum[:])", new: "_ = hex.EncodeToString($sum[:])", run: every,
		},
		{
			rule: "Credentials", what: "who asks for the status of another caller's operation is told", row: "R130 M24",
			in: "idem.Engine.Status", where: "$scope, $anonymous, $err :=", old: "$a.identify($anonymous)", new: `$a.identify($anonymous && $scope != "")`, run: every,
		},
		{
			rule: "Credentials", what: "what is presented doesn't count",
			in: "idem.Engine.credentials", old: "if len($values) > 0 {", new: "if len($values) > 9 {", run: "^TestOtherCredentialsAreRefused$",
		},
		{
			rule: "Credentials", what: "one header passes for another",
			in: "idem.Engine.credentials", old: "appendTagged($b, 'n', strings.ToLower($name))", new: "$b", run: "^TestCredentialsKnowTheirHeader$",
		},
		{
			rule: "CredentialsHost", what: "the host doesn't count",
			in: "idem.Engine.credentials", old: "appendTagged($b, 'o', strings.ToLower($host))", new: `appendTagged($b, 'o', "")`, run: "^TestOtherCredentialsAreRefused$",
		},
		{
			rule: "CredentialsHost", what: "the host before a proxy doesn't count",
			in: "idem.Engine.credentials", old: "$b = appendTagged($b, 'f',", new: "_ = appendTagged($b, 'f',", run: "^TestOtherCredentialsAreRefused$",
		},
		{
			rule: "CredentialsAtRest", what: "credentials can be guessed from the table alone",
			in: "idem.Engine.credentials", old: "hmac.New(sha256.New, []byte($r.Key))", new: "hmac.New(sha256.New, nil)", run: "^TestCredentialsAtRest$",
		},
		{
			rule: "OldCredentials", what: "records from before credentials were stored replay to nobody",
			in: "idem.attempt.compare", old: `if $a.anonymous && $held.Cred != "" {`, new: "if $a.anonymous {", run: "^TestRecordsWithoutCredentialsReplay$",
		},
		{
			rule: "TenantScope", what: "two tenants share the keys of nobody in particular",
			in: "idem.Engine.whose", old: `return tenantScope($r, ""), true, nil`, new: `return "", true, nil`, pkg: "lambda", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "two tenants share the keys of a verified caller",
			in: "idem.Engine.whose", old: `return tenantScope($r, $r.Identity.Kind+":"+$r.Identity.Subject), false, nil`,
			new: `return $r.Identity.Kind + ":" + $r.Identity.Subject, false, nil`, pkg: "lambda", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "the tenant of an invocation doesn't reach the engine",
			in: "lambda.Adapter.request", old: `if $req.Tenant == "" { $req.Tenant = tenantOf($ctx) }`, new: "", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "TenantScope", what: "a direct invocation has no tenant",
			in: "lambda.functionScope", old: "$scope = join($tenant, $scope)", new: "_ = join($tenant, $scope)", run: "^TestTenantsOfDirectInvocations$",
		},
		{
			rule: "TenantName", what: "a tenant's name may hold what ends it",
			in: "idem.tenantScope", old: "escapeFirst.Replace($r.Tenant)", new: "$r.Tenant", pkg: "lambda", run: "^TestTenantsNamesDontRunTogether$",
		},
	}
}
