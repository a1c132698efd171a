package main

// formerMutants break the change of a scope in two releases.
func formerMutants() []mutant {
	const (
		seen    = `"attribute_not_exists(pk) OR (#owner = :owner AND ver = :ver)"`
		claims  = "^TestConformance$/^store_claim$"
		anew    = "^TestMemoryStore$/^engine_former$"
		explore = "^TestScopesChangeInTwoReleases$/^the_second_beside_the_first$"
		presets = "^TestThePresetChanges$"
		both    = "slices.Contains($knows, $before) && slices.Contains($knew, $after)"
	)
	return []mutant{
		{
			rule: "Beside", what: "a claim is won beside any record",
			in: "dynamo.absentCondition", old: `"attribute_not_exists(pk)"`, new: `"attribute_not_exists(pk) OR attribute_exists(pk)"`, run: claims,
		},
		{
			rule: "BesideSeen", what: "a claim is won over or beside a record that another attempt has written since",
			in: "dynamo.seenCondition", old: seen, new: `"attribute_not_exists(pk) OR ((#owner = :owner OR #owner <> :owner) AND ver = :ver)"`, run: claims,
		},
		{
			rule: "BesideSeen", what: "a claim is won over or beside a later version of the record",
			in: "dynamo.seenCondition", old: seen, new: `"attribute_not_exists(pk) OR (#owner = :owner AND (ver = :ver OR ver <> :ver))"`, run: claims,
		},
		{
			rule: "FirstChecks", what: "the first release's claims don't name the other record",
			in: "idem.attempt.claim", old: "$beside = $a.beside.pk", new: "if !$a.opt.Former.Claims {\n $beside = $a.beside.pk\n }", run: explore,
		},
		{
			rule: "SecondChecks", what: "the second release's claims don't name the other record",
			in: "idem.attempt.claim", old: "$beside = $a.beside.pk", new: "if $a.opt.Former.Claims {\n $beside = $a.beside.pk\n }", run: explore,
		},
		{
			rule: "Bury", what: "an expired record under the other scope keeps its holder",
			in: "idem.attempt.claim", old: "if $fenced, $err = $a.bury($ctx, $rec, $until); $err != nil {", new: "if $err != nil {", pkg: "internal/testkit/enginetest", run: anew,
		},
		{
			rule: "BuryOver", what: "a record under the other scope that was released meanwhile is fenced like an expired one",
			in: "idem.attempt.bury", old: "!$a.over($held)", new: "$held == nil || $held.State == store.None", pkg: "internal/testkit/enginetest", run: anew,
		},
		{
			rule: "FenceNonce", what: "a record that an attempt takes over looks like the one that it has fenced",
			in: "idem.attempt.bury", old: "$a.owner = rand.Text()", new: "", run: "^TestFormerRefusesALateClaimBesideATakeOver$",
		},
		{
			rule: "Beside", what: "a claim without an answer is looked for under one scope only",
			in: "idem.attempt.either", old: "$err == nil && $rec == nil && $a.beside != nil", new: "$err == nil && $rec != nil && $a.beside != nil", run: "^TestFormerAnswersAfterALostClaim$",
		},
		{
			rule: "Beside", what: "who has no caller under the other scope is refused",
			in: "idem.naming.sideOf", old: "$none || errors.Is($err, errNobody)", new: "$none", run: "^TestFormerAddsAnAuthorizer$",
		},
		{
			rule: "Beside", what: "who has no scope that the other program finds is refused",
			in: "idem.naming.sideOf", old: "$none || errors.Is($err, errNobody)", new: "$none && false || errors.Is($err, errNobody)", run: "^TestFormerKnowsNobody$",
		},
		{
			rule: "Beside", what: "a scope that can't be found now is taken for none",
			in: "idem.naming.sideOf", old: "$none || errors.Is($err, errNobody)", new: "$none || errors.Is($err, ErrScope)", run: "^TestFormerKnowsNobody$",
		},
		{
			rule: "Beside", what: "who comes without an API key any more is refused",
			in: "lambda.nobody", old: `fmt.Errorf("%w: lambda: %s", idem.ErrScope, $why)`, new: `fmt.Errorf("lambda: %s", $why)`, run: "^TestCallersByChoice$",
		},
		{
			rule: "FormerPreset", what: "a change of preset looks for the former one's keys where its own are",
			in: "idem.namingOf", old: "$former.path = $was.rules.path", new: "", pkg: "lambda", run: presets,
		},
		{
			rule: "FormerPreset", what: "a change of preset doesn't know the former fingerprint",
			in: "idem.Options.knowPreset", old: "$known = append($known, $knows)", new: "", pkg: "lambda", run: presets,
		},
		{
			rule: "FormerPreset", what: "the first release already writes the new preset's fingerprint",
			in: "idem.Options.knowPreset", old: "if $o.Former.Claims {", new: "if false {", pkg: "lambda", run: presets,
		},
		{
			rule: "FormerPreset", what: "a retry by a method of the former preset only runs again",
			in: "idem.Options.knowPreset", old: "if !slices.Contains($o.Methods, $m) {", new: "if false {", pkg: "lambda", run: presets,
		},
		{
			rule: "FormerPreset", what: "a key that the former preset took is too short",
			in: "idem.Options.knowPreset", old: "min($o.MinKey, $was.MinKey)", new: "$o.MinKey", pkg: "lambda", run: presets,
		},
		{
			rule: "FormerPreset", what: "a key that the former preset took has no quotes",
			in: "idem.Options.knowPreset", old: "$o.StrictKey = $o.StrictKey && $was.StrictKey", new: "", pkg: "lambda", run: presets,
		},
		{
			rule: "FormerPreset", what: "a change of scope under ACP forgets the paths",
			in: "idem.namingOf", old: "path: $opt.rules.path}, $n.claims", new: "}, $n.claims", pkg: "internal/testkit/enginetest", run: anew,
		},
		{
			rule: "Unread", what: "a body that the fingerprint refuses is claimed",
			in: "idem.before.enters", old: "if $a.unread != nil {", new: "if false {", pkg: "lambda", run: "^TestABodyFromBeforeACP$",
		},
		{
			rule: "Unread", what: "a body that the fingerprint refuses has no answer from before",
			in: "idem.subject.find", old: "len($e.opt.Fingerprint.Known) == 0", new: "true", pkg: "lambda", run: "^TestABodyFromBeforeACP$",
		},
		{
			rule: "Beside", what: "who shares a former scope isn't told how long a key must be",
			in: "idem.contract.problem", old: "$e.claims.one || $e.claims.all", new: "$e.claims.one", run: "^TestFormerNeedsRandomKeys$",
		},
		{
			rule: "ClaimsHome", what: "a claim stays where the key was",
			in: "idem.attempt.claim", old: "$a.turn()\n }\n $now := $a.opt.Now()", new: "}\n $now := $a.opt.Now()", pkg: "internal/testkit/enginetest", run: anew,
		},
		{
			rule: "Beside", what: "a handler of the other scope waits for itself",
			in: "idem.subject.inside", old: "$op.pk == $a.pk || $a.beside != nil && $op.pk == $a.beside.pk", new: "$op.pk == $a.pk", run: "^TestFormer$/^inside",
		},
		{
			rule: "Beside", what: "the status resource knows one scope only",
			in: "idem.Engine.Status", old: "$err == nil && $v == state.Again && $a.beside != nil", new: "$err == nil && $a.beside == nil && $a.away", run: "^TestFormer$/^status",
		},
		{
			rule: "Beside", what: "a caller who is over his quota doesn't get his former answer",
			in: "idem.before.known", old: "if $err == nil {\n $rec, $v, $err = $a.elsewhere", new: "if $err == nil && $a.away {\n $rec, $v, $err = $a.elsewhere", run: "^TestFormer$/^quota",
		},
		{
			rule: "Beside", what: "a request isn't looked for at its other place if another request has its own",
			in: "idem.attempt.claim", old: "$v == state.Mismatch && !$a.away", new: "$v == state.Mismatch && $a.beside == nil", pkg: "internal/testkit/enginetest", run: anew,
		},
		{
			rule: "Beside", what: "the same for a caller who is over his quota",
			in: "idem.attempt.elsewhere", where: "$op string", old: "$v != state.Again && $v != state.Mismatch", new: "$v != state.Again && !($v == state.Mismatch && $op == \"claim\")", pkg: "internal/testkit/enginetest", run: anew,
		},
		{
			rule: "Beside", what: "the same for an answer in the cache",
			in: "idem.reply.remembered", old: "$v == state.Mismatch && $a.beside == nil", new: "$v == state.Mismatch", pkg: "internal/testkit/enginetest", run: anew,
		},
	}
}
