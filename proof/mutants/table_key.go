package main

// keyMutants break what becomes of a request without a key.
func keyMutants() []mutant {
	return []mutant{
		{
			rule: "Keyed", what: "a route is declared keyed, and its method has no keys",
			in: "idem.Engine.CheckRoute", old: `$method != "" && !$e.methods[$method]`, new: `$method == "" && !$e.methods[$method]`, pkg: "lambda",
			run: "^TestRouterKeysWhatItDeclares$",
		},
		{
			rule: "Keyed", what: "a router asks no engine about its routes",
			in: "lambda.Router.Keyed", old: "if $err := $e.CheckRoute($pattern); $err != nil {", new: "if $err := $e.CheckRoute($pattern); $err != nil && false {", run: "^TestRouterKeysWhatItDeclares$",
		},
		{
			rule: "Keyed", what: "the client repeats a PATCH that the server runs again",
			in: "idem.Options.withDefaults", old: "$o.Methods = defaults.Methods()", new: "$o.Methods = defaults.Methods()[:1]", pkg: "idem/client", run: "^TestBothHalvesKeyTheSameMethods$",
		},
		{
			rule: "Marked", what: "an answer to a watched request that can't be read doesn't say that its key was ignored",
			in: "idem.middleware.observe", old: "if $m.opt.hasKey($r.Header) { $w.Header().Set(statusHeader, ignored) }", new: "", run: "^TestIgnoredKeysAreMarked$",
		},
		{
			rule: "Marked", what: "an answer without protection doesn't say so",
			in: "idem.contract.ignores", old: "!$e.opt.hasKey($r.Header) ||", new: "$e.opt.hasKey($r.Header) ||", run: "^TestIgnoredKeysAreMarked$",
		},
		{
			rule: "Marked", what: "an answer that an inner engine protects is called ignored",
			in: "idem.contract.ignores", old: "$left != nil && $left.acted.Load()", new: "$left == nil", run: "^TestAnInnerEngineIsNotIgnored$",
		},
		{
			rule: "Marked", what: "an answer that an inner middleware protects is called ignored",
			in: "idem.write", old: "delete($w.Header(), statusHeader)", new: "", run: "^TestAnInnerEngineIsNotIgnored$",
		},
		{
			rule: "Route", what: "everything below a path is one operation",
			in: "idem.isWhole", old: "if greedy($pattern) {", new: "if $pattern == \"\" {", run: "^TestOperationsByRoute$",
		},
		{
			rule: "Route", what: "a route that got a part of the path stands for the whole",
			in: "idem.isWhole", old: "len($want) != len($got)", new: "len($want) > len($got)", run: "^TestOperationsByRoute$",
		},
		{
			rule: "Route", what: "a pattern of another path stands for this path",
			in: "idem.isWhole", where: "for $i, $segment := range $want", old: "unescaped($segment) != unescaped($got[$i])", new: "unescaped($segment) == unescaped($got[$i]) && $i < 0",
			run: "^TestOperationsByRoute$",
		},
		{
			rule: "Route", what: "the path is what a router has left over",
			in: "idem.sentPath", old: "$err == nil && ", new: "$err != nil && ", run: "^TestThePathIsTheOneThatWasSent$",
		},
		{
			rule: "Route", what: "cancelling B replays the answer for A",
			in: "idem.subject.find", old: "$err = checkRoute(&$e.opt.Fingerprint, $s.req, $e.claims.route); $err != nil", new: "$err = checkRoute(&$e.opt.Fingerprint, $s.req, $e.claims.route); $err != nil && false", run: "^TestWildcardsThatAreSkippedAreRefused$",
		},
		{
			rule: "Route", what: "a route for everything below its path replays the answer for another path",
			in: "idem.Fingerprint.hidesWildcards", old: "greedy($path) || ", new: "", run: "^TestWildcardsThatAreSkippedAreRefused$",
		},
		{
			rule: "KeyHeader", what: "the contract's own header isn't read",
			in: "idem.contract.key", old: "headerValues($r.Header, $e.opt.KeyHeader)", new: "headerValues($r.Header, KeyHeader)", run: "^TestKeyUnderAnotherName$",
		},
		{
			rule: "KeyHeader", what: "a key of the contract's own header gets into a record",
			in: "idem.Options.validate", old: "!slices.Contains(secretInput, $canonical) && $canonical != $o.KeyHeader", new: "!slices.Contains(secretInput, $canonical)",
			run: "^TestKeyHeaderIsOnEveryList$",
		},
		{
			rule: "KeyFrom", what: "a browser's own header makes two of one form",
			in: "idem.contract.key", where: "$r.Key, $err = $e.opt.KeyFrom($r)", old: "if $e.opt.KeyFrom != nil {", new: "if $e.opt.KeyFrom != nil && !$e.opt.hasKey($r.Header) {", run: "^TestWhichKeyCounts$",
		},
		{
			rule: "Sender", what: "a middleware in a handler doesn't know the verified caller",
			in: "idem.httpRequest", old: "Identity: $from.identity,", new: "Identity: Identity{},", pkg: "lambda", run: "^TestMiddlewareKnowsTheVerifiedSender$",
		},
		{
			rule: "Sender", what: "a middleware in a handler doesn't know the tenant",
			in: "idem.httpRequest", old: "Tenant: $from.tenant", new: "Tenant: \"\"", pkg: "lambda", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "Sender", what: "an engine that leaves a request alone hides who was verified",
			in: "idem.core.pass", old: "$inner = WithSender($ctx, $r)", new: "_ = $r", pkg: "lambda",
			run: "^TestMiddlewareKnowsTheVerifiedSender$/^in_a_handler_that",
		},
		{
			rule: "Sender", what: "an operation hides who was verified",
			in: "idem.opContext.Value", old: "$r.hasSender()", new: "!$r.hasSender()", pkg: "lambda", run: "^TestMiddlewareKnowsTheVerifiedSender$/^in_a_handler_with_an",
		},
		{
			rule: "Sender", what: "a middleware in a handler doesn't know a role's session",
			in: "idem.httpRequest", old: "Facts: $from.facts, ", new: "", pkg: "lambda", run: "^TestMiddlewareKnowsTheFacts$",
		},
		{
			rule: "Sender", what: "a route without keys hides who was verified",
			in: "lambda.Router.Handle", old: "return $t.plain(idem.WithSender($ctx, &$req), $ev)", new: "return $t.plain($ctx, $ev)",
			run: "^TestMiddlewareKnowsTheVerifiedSender$/^in_a_router.s_route_without",
		},
		{
			rule: "FailedKey", what: "an event whose key function fails runs as one without a key",
			in: "lambda.Handler.do", old: "$req.Key = unreadable", new: `$req.Key = ""`, run: "^TestKeyModes$",
		},
		{
			rule: "FailedKey", what: "a record whose key function fails runs as one without a key",
			in: "lambda.keyOf", old: "return unreadable, &idem.Error{", new: `return "", &idem.Error{`, run: "^TestKeyModes$",
		},
		{
			rule: "FailedKey", what: "a record whose key function panics runs as one without a key",
			in: "lambda.EachHandler.read", old: "$t.req.Key, $t.err = unreadable, panicked($v)", new: `$t.req.Key, $t.err = "", panicked($v)`, run: "^TestKeyModes$",
		},
		{
			rule: "MadeKey", what: "a key is made for what comes again with another",
			in: "idem.core.keyless", old: "case !$generates || $r.Redelivered:", new: "case !$generates:", pkg: "lambda", run: "^TestKeyModes$",
		},
		{
			rule: "MadeKey", what: "a key is made inside of an operation, whose completer would make another",
			in: "idem.core.keyless", old: ", $generates && nested($ctx):", new: ":", pkg: "lambda", run: "^TestGeneratedKeyOfANested",
		},
	}
}
