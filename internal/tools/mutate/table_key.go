package main

// keyMutants break what becomes of a request without a key.
func keyMutants() []mutant {
	return []mutant{
		{
			rule: "FailedKey", what: "an event whose key function fails runs as one without a key",
			in: "lambda.Handler.do", old: "$req.Key = unreadable", new: `$req.Key = ""`, run: "^TestDirectKeyModes$",
		},
		{
			rule: "FailedKey", what: "a record whose key function fails runs as one without a key",
			in: "lambda.keyOf", old: "return unreadable, &idem.Error{", new: `return "", &idem.Error{`, run: "^TestEachKeyModes$",
		},
		{
			rule: "FailedKey", what: "a record whose key function panics runs as one without a key",
			in: "lambda.EachHandler.read", old: "$t.req.Key, $t.err = unreadable, panicked($v)", new: `$t.req.Key, $t.err = "", panicked($v)`, run: "^TestEachKeyModes$",
		},
		{
			rule: "MadeKey", what: "a key is made for what comes again with another",
			in: "idem.Engine.keyless", old: "case !$generates || $r.Redelivered:", new: "case !$generates:", pkg: "lambda", run: "^TestEachKeyModes$",
		},
		{
			rule: "MadeKey", what: "a key is made inside of an operation, whose completer would make another",
			in: "idem.Engine.keyless", old: ", $generates && nested($ctx):", new: ":", pkg: "lambda", run: "^TestGeneratedKeyOfANested",
		},
	}
}
