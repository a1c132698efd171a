package main

// commerceMutants break rules of the contracts for assistants' checkouts.
func commerceMutants() []mutant {
	return []mutant{
		{
			rule: "CommercePath", what: "the same key on another session is a conflict under ACP",
			in: "idem.commerce", old: "rules{path: true, retention: 24 * time.Hour}", new: "rules{retention: 24 * time.Hour}", pkg: "lambda", run: "^TestACP$/^the_same_key_on_another_endpoint",
		},
		{
			rule: "CommercePath", what: "a key that cancels one session cancels no other",
			in: "idem.naming.partitionKey", old: "case $by.path && $r.Path != \"\":", new: "case false:", pkg: "lambda", run: "^TestACP$/^the_same_key_on_another_endpoint",
		},
		{
			rule: "CommercePath", what: "ACP's fingerprint in another scope replays the answer of another path",
			in: "idem.commerce", old: "appendTagged(appendTagged(nil, 'm', $r.Method), 'p', $r.Path)", new: "appendTagged(nil, 'm', $r.Method)", pkg: "lambda", run: "^TestFingerprintOfACPAlone$",
		},
		{
			rule: "CommerceQuery", what: "another query gets the answer of the first one",
			in: "idem.commerce", old: `if $query := canonicalQuery($r.Query); $query != "" {`, new: `if $query := canonicalQuery($r.Query); $query != "" && false {`, pkg: "lambda", run: "^TestACP$",
		},
		{
			rule: "CommerceStored", what: "a refusal of the merchant runs again",
			in: "idem.commerce", old: "$o.Stored = storedBy(false, http.StatusUnauthorized, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests)", new: "$o.Stored = DefaultStored",
			pkg: "lambda", run: "^TestACP$/^refusals_of_the_business",
		},
		{
			rule: "CommerceRetention", what: "a key may be forgotten before a day is over",
			in: "idem.rules.validate", old: "$o.Retention < $r.retention", new: "false", pkg: "lambda", run: "^TestCommercePresetsRefuseWhatBreaksThem$",
		},
		{
			rule: "CommerceClosed", what: "UCP runs without the store",
			in: "idem.rules.validate", old: "$r.failClosed && $o.FailOpen", new: "false", pkg: "lambda", run: "^TestCommercePresetsRefuseWhatBreaksThem$",
		},
		{
			rule: "CommerceErrors", what: "ACP's error of a missing key has another code",
			in: "idem.commerceCodes", old: `{ErrKeyMissing, "idempotency_key_required"},`, new: "", pkg: "lambda", run: "^TestACP$/^a_key_is_required",
		},
		{
			rule: "CommerceErrors", what: "UCP refuses another body with 422",
			in: "idem.ucpJSON", old: "$p.Status = http.StatusConflict", new: "", pkg: "lambda", run: "^TestUCP$/^a_duplicate_gets",
		},
		{
			rule: "RequestID", what: "a refusal doesn't echo Request-Id",
			in: "idem.contract.answers", old: "$e.opt.rules.requestID", new: "false", pkg: "lambda", run: "^TestACP$/^a_key_is_required",
		},
		{
			rule: "RequestID", what: "a replay doesn't echo its request's Request-Id",
			in: "idem.contract.dress", old: "if $e.opt.rules.requestID {", new: "if false {", pkg: "lambda", run: "^TestACP$/^a_replay_has",
		},
		{
			rule: "ExactJSON", what: "a member that is there twice counts once",
			in: "idem.canonical.arrange", old: "return errTwice", new: "break", run: "^TestExactJSON$",
		},
		{
			rule: "ExactJSON", what: "of two members whose names differ only in case readers take different ones",
			in: "idem.canonical.arrange", old: "return errCase", new: "break", run: "^TestExactJSON$",
		},
		{
			rule: "ExactJSON", what: "half of a surrogate pair is any character",
			in: "idem.exactJSON", old: "if halfSurrogate($body) {", new: "if false {", run: "^TestExactJSON$",
		},
		{
			rule: "ExactJSON", what: "numbers are compared as they are written",
			in: "idem.canonical.scalar", old: "if $c.exact { $c.out = appendDecimal($c.out, string($tok))", new: "if false { $c.out = appendDecimal($c.out, string($tok))", run: "^TestExactJSON$",
		},
		{
			rule: "ExactJSON", what: "-0 is not 0",
			in: "idem.appendDecimal", old: `if $significant == "" {`, new: `if $significant == "" && !$negative {`, where: "$number, $negative := strings.CutPrefix($number, \"-\")", run: "^TestExactJSON$",
		},
		{
			rule: "ExactJSON", what: "digits behind the point don't change the power",
			in: "idem.appendDecimal", old: "len($digits)-len($significant)-len($fraction)", new: "len($digits)-len($significant)", run: "^TestExactJSON$",
		},
		{
			rule: "ExactJSON", what: "a carry beyond a huge exponent is lost",
			in: "idem.appendSum", old: "if $carry > 0 {", new: "if $carry > 1 {", run: "^TestExactJSON$",
		},
	}
}
