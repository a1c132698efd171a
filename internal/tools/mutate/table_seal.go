package main

// sealMutants break the encryption of contents.
func sealMutants() []mutant {
	const item = "dynamo/internal/item"
	return []mutant{
		{
			rule: "SealPlace", what: "a part opens in another record",
			in: item + ".Box.context", old: `LayoutVersion, $b.pk, $b.id, $kind}`, new: `LayoutVersion, $b.id, $kind}`, run: "^TestBadInput25",
		},
		{
			rule: "SealPlace", what: "a part opens in another operation under the same key",
			in: item + ".Box.context", old: `LayoutVersion, $b.pk, $b.id, $kind}`, new: `LayoutVersion, $b.pk, $kind}`, run: "^TestBadInput25",
		},
		{
			rule: "SealPlace", what: "a result opens in another phase",
			in: item + ".resultPart", old: "return []string{strconv.Itoa($at), $phase}", new: "_, _ = strconv.Itoa($at), $phase; return nil", run: "^TestBadInput25",
		},
		{
			rule: "SealPlace", what: "a job's args open under another kind",
			in: item + ".argsPart", old: "return []string{$name, $kind}", new: "_ = $kind; return []string{$name}", run: "^TestBadInput25RenamedAround$",
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
			rule: "SealPinned", what: "an operation needs the provider again after its claim",
			in: "dynamo.Store.newBox", old: "$r.Seal = item.NewSeal($key)", new: "_ = item.NewSeal", run: "^TestNoProviderBetweenClaimAndAnswer$",
		},
		{
			rule: "SealUntake", what: "a ticket whose request can't be opened uses up a try",
			in: "dynamo.Store.Take", old: "$s.untake($ctx, $rec, $err)", new: "", run: "^TestTicketWhoseRequestIsSealed$",
		},
		{
			rule: "SealWaits", what: "a job whose args can't be opened is parked",
			in: "dynamo/stream.Drain.open", old: `$err = fmt.Errorf("%w: the job's args can't be opened: %w", jobs.ErrSinkDown, $err)`,
			new: `$err = fmt.Errorf("the job's args can't be opened: %w", $err)`, run: "^TestSealedJobWaitsForItsKey$",
		},
		{
			rule: "SealNonces", what: "a data key seals without end",
			in: "seal.Sealer.good", old: "|| $k.used.Load() >= $s.opt.MaxMessages", new: "", run: "^TestSealerKeepsADataKey$",
		},
	}
}
