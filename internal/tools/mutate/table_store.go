package main

// storeMutants break the conditions of both stores.
func storeMutants() []mutant {
	const (
		memory, schema, store = "idem/memory.go", "dynamo/schema.go", "dynamo/store.go"
		take                  = "dynamo/take.go"
		suite                 = "idem/idemtest"

		claims  = "^TestMemoryStore$/^store_claim$"
		commits = "^TestMemoryStore$/^store_commit$"

		dynamoClaims  = "^TestConformance$/^store_claim$"
		dynamoCommits = "^TestConformance$/^store_commit$"
		dynamoTakes   = "^TestConformance$/^store_take$"

		claimOld  = `"attribute_not_exists(pk) OR (exp_s < :now AND #owner <> :me)"`
		holderOld = `"#owner = :owner AND ver = :ver"`

		memClaim  = "old != nil && (!over(old.Expires, c.Now) || old.Owner == c.Next.Owner) {"
		memCommit = "case old.Owner != c.Prev.Owner || old.Ver != c.Prev.Ver:"

		// The conditions of the plain call and of the transaction, told apart by what
		// stands before them.
		claimTx = `Put: &types.Put{
			TableName:                           &s.table,
			Item:                                it,
			ConditionExpression:                 &claimIf,`
		claimTxNew = `Put: &types.Put{
			TableName:                           &s.table,
			Item:                                it,
			ConditionExpression:                 aws.String(claimIf + " OR attribute_exists(pk)"),`
		commitTx = `Update: &types.Update{
			TableName:                           &s.table,
			Key:                                 key(c.Prev.PK),
			ConditionExpression:                 &holderIf,`
		commitPlain = `UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName:                           &s.table,
			Key:                                 key(c.Prev.PK),
			ConditionExpression:                 &holderIf,`
		anyOwner = `"(#owner = :owner OR #owner <> :owner) AND ver = :ver"`
		anyVer   = `"#owner = :owner AND (ver = :ver OR ver <> :ver)"`
	)
	// on is a condition that is replaced in some commits only.
	on := func(begin, which, condition string) string {
		return begin[:len(begin)-len("&holderIf,")] +
			"map[bool]*string{true: aws.String(" + condition + "), false: &holderIf}[" + which + "],"
	}
	const (
		takeOver  = "c.Next.Owner != c.Prev.Owner && c.Next.Tries == c.Prev.Tries"
		completer = "c.Next.Owner != c.Prev.Owner && c.Next.Tries > c.Prev.Tries"
	)
	return []mutant{
		{
			rule: "TakeOpen", what: "a ticket opens what has ended",
			file: schema, old: " AND st = :open AND attribute", new: " AND (st = :open OR st <> :open) AND attribute", run: dynamoTakes,
		},
		{
			rule: "TakeLease", what: "a ticket takes a running request over on the table",
			file: schema, old: " AND lease_ms <= :now AND", new: " AND", run: dynamoTakes,
		},
		{
			rule: "TakeInput", what: "what has no request is taken over on the table",
			file: schema, old: " AND attribute_exists(req) AND", new: " AND", run: dynamoTakes,
		},
		{
			rule: "TakeKept", what: "what isn't kept is taken over on the table",
			file: schema, old: "(req.o) AND attribute_not_exists(exp_s)\"", new: "(req.o)\"", run: dynamoTakes,
		},
		{
			rule: "TakeElsewhere", what: "what has its request elsewhere is taken over unread",
			file: schema, old: " AND attribute_not_exists(req.o)", new: "", run: "^TestClaimThatDiesBeforeItsCompanion$",
		},
		{
			rule: "TakeReleased", what: "a ticket that says released takes a running request over",
			file: schema, old: `takeReleased = " AND lease_ms = :zero"`, new: `takeReleased = " AND lease_ms >= :zero"`, run: dynamoTakes,
		},
		{
			rule: "TakeDoubts", what: "a take-over forgets what is in doubt",
			file: schema, old: " AND attribute_not_exists(doubts)\"", new: "\"", run: dynamoTakes,
		},
		{
			rule: "TakeDoubts", what: "the calls of who never came back aren't in doubt",
			file: take, old: "takeSet+takeDoubts\n\t\targs[\":doubts\"] = v.list([]string{idem.AnyCall})\n", new: "takeSet\n", run: dynamoTakes,
		},
		{
			rule: "TakeLayout", what: "a record of a newer layout is taken over",
			file: schema, old: " AND v = :v AND st = :open", new: " AND (v = :v OR v <> :v) AND st = :open", run: "^TestRecordOfANewerLayoutIsNotTaken$",
		},
		{
			rule: "TakeHandler", what: "another handler's operation is taken over on the table",
			file: take, old: "\tcondition += v.handlers(t.Handlers, args) + ", new: "\tcondition += ", run: dynamoTakes,
		},
		{
			rule: "TakeHandler", what: "another handler of the same function takes it over on the table",
			file: take, old: "\" AND (\"+v.names(n, functions[function], args)+\")\")", new: "\"\")", run: dynamoTakes,
		},
		{
			rule: "TakeTenant", what: "another tenant's operation is taken over on the table",
			file: take, old: " + \" AND \" + v.equals(attrTenant, \":tn\", t.Tenant, args)\n", new: "\n", run: dynamoTakes,
		},
		{
			rule: "ClaimCond", what: "memory: a claim over anything that isn't its own",
			file: memory, old: memClaim, new: "old != nil && old.Owner == c.Next.Owner {", pkg: suite, run: claims,
		},
		{
			rule: "ClaimOwn", what: "memory: a late copy of a claim revives what its attempt freed",
			file: memory, old: memClaim, new: "old != nil && !over(old.Expires, c.Now) {", pkg: suite, run: claims,
		},
		{
			rule: "CWCCond", what: "memory: a claim with writes over anything",
			file: memory, old: memClaim, new: "old != nil && len(c.Writes) == 0 && (!over(old.Expires, c.Now) || old.Owner == c.Next.Owner) {",
			run: "^TestMergedClaimConsultsTheRecord$",
		},
		{
			rule: "CommitOwner", what: "memory: anybody's commit",
			file: memory, old: memCommit, new: "case old.Ver != c.Prev.Ver:", pkg: suite, run: commits,
		},
		{
			rule: "CommitVer", what: "memory: a commit after any other",
			file: memory, old: memCommit, new: "case old.Owner != c.Prev.Owner:", pkg: suite, run: commits,
		},
		{
			rule: "TakeOwner", what: "memory: a take-over from whoever holds it",
			file: memory, old: memCommit, new: "case old.Owner != c.Prev.Owner && c.Next.Owner == c.Prev.Owner || old.Ver != c.Prev.Ver:",
			run: "^TestMemoryTakeOverIsConditional$",
		},
		{
			rule: "TakeVer", what: "memory: a take-over after any other write",
			file: memory, old: memCommit, new: "case old.Owner != c.Prev.Owner || old.Ver != c.Prev.Ver && c.Next.Owner == c.Prev.Owner:",
			run: "^TestMemoryTakeOverIsConditional$",
		},
		{
			rule: "JobEntry", what: "memory: a commit that stages a job brings delivered ones back",
			file: memory, old: "if _, known := prev.Jobs[id]; !known {", new: "if len(next.Jobs) > len(prev.Jobs) {", pkg: suite, run: commits,
		},
		{
			rule: "ClaimCond", what: "a claim over anything",
			file: schema, old: claimOld, new: `"attribute_not_exists(pk) OR attribute_exists(pk) OR (exp_s < :now AND #owner <> :me)"`, run: dynamoClaims,
		},
		{
			rule: "ClaimCond", what: "a claim over a record that hasn't expired, or is kept",
			file: schema, old: claimOld, new: `"attribute_not_exists(pk) OR (exp_s <> :now AND #owner <> :me)"`, run: dynamoClaims,
		},
		{
			rule: "ClaimOwn", what: "a late copy of a claim revives what its attempt freed",
			file: schema, old: claimOld, new: `"attribute_not_exists(pk) OR (exp_s < :now AND (#owner <> :me OR #owner = :me))"`, run: dynamoClaims,
		},
		{
			rule: "CWCCond", what: "a claim with writes over anything",
			file: store, old: claimTx, new: claimTxNew, run: "^TestMergedWritesAreConditional$",
		},
		{
			rule: "CommitOwner", what: "anybody's commit",
			file: schema, old: holderOld, new: anyOwner, run: dynamoCommits,
		},
		{
			rule: "CommitVer", what: "a commit after any other",
			file: schema, old: holderOld, new: anyVer, run: dynamoCommits,
		},
		{
			rule: "CommitOwner", what: "anybody's commit with writes",
			file: store, old: commitTx, new: on(commitTx, "true", anyOwner), run: "^TestMergedWritesAreConditional$",
		},
		{
			rule: "CommitVer", what: "a commit with writes after any other",
			file: store, old: commitTx, new: on(commitTx, "true", anyVer), run: "^TestMergedWritesAreConditional$",
		},
		{
			rule: "TakeOwner", what: "a take-over from whoever holds it",
			file: store, old: commitPlain, new: on(commitPlain, takeOver, anyOwner), run: "^TestTakeOverIsConditional$",
		},
		{
			rule: "TakeVer", what: "a take-over after any other write",
			file: store, old: commitPlain, new: on(commitPlain, takeOver, anyVer), run: "^TestTakeOverIsConditional$",
		},
		{
			rule: "TakeOwnerK", what: "a completer's take-over from whoever holds it",
			file: store, old: commitPlain, new: on(commitPlain, completer, anyOwner), run: "^TestTakeOverIsConditional$",
		},
		{
			rule: "TakeVer", what: "a completer's take-over after any other write",
			file: store, old: commitPlain, new: on(commitPlain, completer, anyVer), run: "^TestTakeOverIsConditional$",
		},
		{
			rule: "JobEntry", what: "a commit that stages a job writes the whole map",
			file: "dynamo/update.go", old: "\tu.addJobs(prev.Jobs, next.Jobs)\n",
			new: "\tif len(next.Jobs) != len(prev.Jobs) {\n\t\tu.put(attrJobs, \":jobs\", u.jobs(next.Jobs))\n\t}\n", run: dynamoCommits,
		},
		{
			rule: "TouchesWhatDiffers", what: "a commit writes the phases even where they don't differ",
			file: "dynamo/update.go", old: "if !slices.EqualFunc(prev.Phases, next.Phases, samePhase) {", new: "if samePhase(idem.Phase{}, idem.Phase{}) {", run: dynamoCommits,
		},
		{
			rule: "LayoutVersion", what: "records of a later layout are read as ours",
			file: "dynamo/codec.go", old: "d.err == nil && strconv.FormatInt(v, 10) != layoutVersion {", new: "d.err == nil && strconv.FormatInt(v, 10) == \"\" {",
			run: "^TestBadInput24CorruptRecord$",
		},
		{
			rule: "StrongRead", what: "the read that decides about a lost answer may be old",
			file: store, old: "return s.get(ctx, pk, true)", new: "return s.get(ctx, pk, false)", run: "^TestReadsThatDecideAreStrong$",
		},
	}
}
