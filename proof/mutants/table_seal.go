package main

// sealMutants break the encryption of contents.
func sealMutants() []mutant {
	const (
		item  = "dynamo/internal/item"
		bound = "^TestBadInput25WhoAndWhereAreBound$"
	)
	return []mutant{
		{
			rule: "SealPlace", what: "a part opens in another record",
			in: item + ".Box.context", old: `sealLayout, $b.pk, $b.id, $kind)`, new: `sealLayout, $b.id, $kind)`, run: "^TestBadInput25",
		},
		{
			rule: "SealPlace", what: "a part opens in another operation under the same key",
			in: item + ".Box.context", old: `sealLayout, $b.pk, $b.id, $kind)`, new: `sealLayout, $b.pk, $kind)`, run: "^TestBadInput25",
		},
		{
			rule: "SealPlace", what: "no part opens that an earlier release has sealed",
			in: item + ".Box.context", old: `sealLayout, $b.pk, $b.id, $kind)`, new: `"2", $b.pk, $b.id, $kind)`, pkg: "dynamo", run: "^TestGoldenItems$",
		},
		{
			rule: "SealPlace", what: "a result opens in another phase",
			in: item + ".resultPart", old: "return []string{strconv.Itoa($at), $phase}", new: "_, _ = strconv.Itoa($at), $phase; return nil", run: "^TestBadInput25",
		},
		{
			rule: "SealPlace", what: "a job's args open under another kind",
			in: item + ".argsPart", old: "$j.Kind, $j.Group}", new: "$j.Group}", run: "^TestBadInput25RenamedAround$",
		},
		{
			rule: "SealWhose", what: "a part opens for another function",
			in: item + ".NewBox", old: "$r.Handler.Function,", new: `"",`, pkg: "dynamo", run: bound,
		},
		{
			rule: "SealWhose", what: "a part opens for another handler",
			in: item + ".NewBox", old: "$r.Handler.Name,", new: `"",`, pkg: "dynamo", run: bound,
		},
		{
			rule: "SealWhose", what: "a part opens for another tenant",
			in: item + ".NewBox", old: "$r.Tenant, $r.Route", new: `"", $r.Route`, pkg: "dynamo", run: bound,
		},
		{
			rule: "SealWhose", what: "a part opens for another route",
			in: item + ".NewBox", old: "$r.Route,", new: `"",`, pkg: "dynamo", run: bound,
		},
		{
			rule: "SealWhose", what: "a part opens for another caller",
			in: item + ".NewBox", old: "$r.Scope,", new: `"",`, pkg: "dynamo", run: bound,
		},
		{
			rule: "SealWhose", what: "a part opens for another request",
			in: item + ".NewBox", old: "$r.Scope, $r.Fingerprint + $r.Scheme}", new: `$r.Scope, ""}`, pkg: "dynamo", run: bound,
		},
		{
			rule: "SealWhose", what: "a job's args open for another tenant",
			in: item + ".Box.context", old: "append($place, $b.tenant)", new: `append($place, "")`, pkg: "dynamo", run: bound,
		},
		{
			rule: "SealWhose", what: "a job's args open in another group",
			in: item + ".argsPart", old: "$j.Kind, $j.Group}", new: "$j.Kind}", run: "^TestBadInput25RenamedAround$",
		},
		{
			rule: "SealMoved", what: "a renamed handler can't open what the former one has sealed",
			in: "dynamo.movesSealed", old: "$next.Handler != $prev.Handler ||", new: "", pkg: "dynamo", run: "^TestSealedContentsGoWithTheOperation$",
		},
		{
			rule: "SealMoved", what: "the request stays sealed for the former handler",
			in: "dynamo.Store.request", old: "case $moved && $next.Input != nil:", new: "case $moved && $next == nil:", run: "^TestSealedContentsGoWithTheOperation$",
		},
		{
			rule: "SealMoved", what: "results stay sealed for the former handler",
			in: "dynamo.update.fields", old: "&& (!$moved || $f.Name != item.AttrPhases || len($next.Phases) == 0) {", new: "{", run: "^TestSealedContentsGoWithTheOperation$",
		},
		{
			rule: "SealPlace", what: "a companion opens in another's place",
			in: item + ".chunkPart", old: "strconv.Itoa($o.Count), strconv.Itoa($i)}", new: `strconv.Itoa($o.Count), strconv.Itoa(0*$i)}`, pkg: "dynamo", run: "^TestBadInput25AlteredInTheTable$",
		},
		{
			rule: "SealRequired", what: "plain contents pass for sealed ones",
			in: item + ".Unseal", old: "$sealer.Required() && hasPlain($r)", new: "$sealer.Required() && $r == nil && hasPlain($r)", run: "^TestRequiredRefusesPlainContents$",
		},
		{
			rule: "SealClaim", what: "a claim is written without a data key",
			in: "dynamo.Store.newBox", old: "return nil, errors.Join(store.ErrSealed, $err)", new: "_ = errors.Join; return nil, nil", run: "^TestBadInput26NoDataKey$",
		},
		{
			rule: "SealClosed", what: "contents that were read closed are written empty",
			in: "dynamo.Store.openBox", old: "item.SealOf($prev).Closed()", new: "$prev == nil && item.SealOf($prev).Closed()", run: "^TestClosedContentsAreNotOverwritten$",
		},
		{
			rule: "SealTakeOver", what: "a take-over needs no data key",
			in: "dynamo.Store.openBox", old: "if $takes || hasContents($prev, $next) {", new: "if _ = $takes; hasContents($prev, $next) {", run: "^TestNobodyTakesOverWithoutTheKey$",
		},
		{
			rule: "SealPinned", what: "an operation needs the provider again after its claim",
			in: "dynamo.Store.newBox", old: "$r.Seal = item.NewSeal($key)", new: "_ = item.NewSeal", run: "^TestNoProviderBetweenClaimAndAnswer$",
		},
		{
			rule: "SealUntake", what: "a ticket whose request can't be opened uses up a try",
			in: "dynamo.Store.Take", old: "$s.untake($ctx, $rec, $err)", new: "", run: "^TestTicketWhoseRequestIsSealed$",
		},
		{
			rule: "SealTicket", what: "a ticket takes a plain request though its results can't be stored",
			in: "dynamo.Store.Take", old: "$condition += takeSealed", new: "_ = takeSealed", run: "^TestTicketForAPlainRecordNeedsADataKey$",
		},
		{
			rule: "SealExpired", what: "an expired record that can't be claimed is in flight",
			in: "idem.attempt.claim", old: `return nil, 0, $a.unavailable("claim", $cause)`, new: "return nil, state.InFlight, nil", pkg: "dynamo", run: "^TestNoDataKeyOverAnExpiredRecord$",
		},
		{
			rule: "SealSeen", what: "a request runs unprotected though its closed record was seen",
			in: "idem.before.glance", old: "$a.seen = $a.seen || $rec != nil || errors.Is($err, ErrCorrupt)", new: "_ = errors.Is",
			pkg: "dynamo", run: "^TestFailOpenRemembersAClosedRecord$",
		},
		{
			rule: "SealWaits", what: "a job whose args can't be opened is parked",
			in: "dynamo/stream.Drain.open", old: `$err = fmt.Errorf("%w: the job's args can't be opened: %w", jobs.ErrSinkDown, $err)`,
			new: `$err = fmt.Errorf("the job's args can't be opened: %w", $err)`, run: "^TestSealedJobWaitsForItsKey$",
		},
		{
			rule: "SealNonces", what: "a data key seals without end",
			in: "seal.Sealer.good", old: "&& $k.used.Load() < $s.opt.MaxMessages", new: "", run: "^TestSealerKeepsADataKey$",
		},
		{
			rule: "SharedFailure", what: "who waits for a data key asks a provider that hangs once more, one after the other",
			in: "seal.opening.failed", old: "$o.err = $err", new: "_ = $err", run: "^TestWhoWaitsSharesTheError$",
		},
	}
}
