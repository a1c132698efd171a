package main

import "strings"

// storeMutants break the conditions of both stores.
func storeMutants() []mutant {
	const (
		suite = "internal/testkit/enginetest"

		claims  = "^TestMemoryStore$/^store_claim$"
		commits = "^TestMemoryStore$/^store_commit$"

		dynamoClaims  = "^TestConformance$/^store_claim$"
		dynamoCommits = "^TestConformance$/^store_commit$"
		dynamoTakes   = "^TestConformance$/^store_take$"
		firstJobs     = `case len($prev) == 0: $u.put(item.AttrJobs, ":jobs", $u.Jobs($next))`
		goesOn        = "^TestOperationsGoOn$"

		memClaim  = "$old != nil && !$free && !unchanged($old, $c.Seen) {"
		memCommit = "case $old.Owner != $c.Prev.Owner || $old.Ver != $c.Prev.Ver:"
		claim     = `"attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`

		// The record's part of a transaction.
		claimTx  = "Item: $put.Item, ConditionExpression: $put.ConditionExpression"
		commitTx = "Key: $in.Key, ConditionExpression: $in.ConditionExpression"
		commit   = "dynamodb.UpdateItemInput{TableName: &$s.table, Key: $u.Key($c.Prev.PK), ConditionExpression: "

		holder   = `"#owner = :owner AND ver = :ver"`
		anyOwner = `"(#owner = :owner OR #owner <> :owner) AND ver = :ver"`
		anyVer   = `"#owner = :owner AND (ver = :ver OR ver <> :ver)"`

		takeOver  = "$c.Next.Owner != $c.Prev.Owner && $c.Next.Tries == $c.Prev.Tries"
		completer = "$c.Next.Owner != $c.Prev.Owner && $c.Next.Tries > $c.Prev.Tries"
	)
	// on is a condition in the commits for which which is true.
	on := func(which, condition string) string {
		return "map[bool]*string{true: new(" + condition + "), false: &$u.condition}[" + which + "]"
	}
	return []mutant{
		{
			rule: "TakeOpen", what: "a ticket opens what has ended",
			in: "dynamo.takeCondition", old: `"… AND st = :open AND attribute…"`, new: `"… AND (st = :open OR st <> :open) AND attribute…"`, run: dynamoTakes,
		},
		{
			rule: "TakeLease", what: "a ticket takes a running request over on the table",
			in: "dynamo.takeAbandoned", old: `"… AND lease_ms <= :now AND…"`, new: `"… AND…"`, run: dynamoTakes,
		},
		{
			rule: "TakeInput", what: "what has no request is taken over on the table",
			in: "dynamo.takeCondition", old: `"… AND attribute_exists(req) AND…"`, new: `"… AND…"`, run: dynamoTakes,
		},
		{
			rule: "TakeKept", what: "what isn't kept is taken over on the table",
			in: "dynamo.takeCondition", old: `"…(req.o) AND attribute_not_exists(exp_s)"`, new: `"…(req.o)"`, run: dynamoTakes,
		},
		{
			rule: "TakeElsewhere", what: "what has its request elsewhere is taken over unread",
			in: "dynamo.takeCondition", old: `"… AND attribute_not_exists(req.o)…"`, new: `"…"`, run: "^TestClaimThatDiesBeforeItsCompanion$",
		},
		{
			rule: "TakeReleased", what: "a ticket that says released takes a running request over",
			in: "dynamo.takeReleased", old: `" AND lease_ms = :zero"`, new: `" AND lease_ms >= :zero"`, run: dynamoTakes,
		},
		{
			rule: "TakeDoubts", what: "a take-over forgets what is in doubt",
			in: "dynamo.takeAbandoned", old: `"… AND attribute_not_exists(mark)"`, new: `"…"`, run: dynamoTakes,
		},
		{
			rule: "TakeLayout", what: "a record of a newer layout is taken over",
			in: "dynamo.takeCondition", old: `"… AND v = :v AND st = :open…"`, new: `"… AND (v = :v OR v <> :v) AND st = :open…"`, run: "^TestRecordOfANewerLayoutIsNotTaken$",
		},
		{
			rule: "TakeHandler", what: "another handler's operation is taken over on the table",
			in: "dynamo.Store.Take", old: "$condition += handlers(&$v, $t.Handlers, $args) +", new: "$condition +=", run: dynamoTakes,
		},
		{
			rule: "TakeHandler", what: "another handler of the same function takes it over on the table",
			in: "dynamo.handlers", old: `" AND ("+handlerNames($v, $n, $functions[$function], $args)+")")`, new: `"")`, run: dynamoTakes,
		},
		{
			rule: "TakeTenant", what: "another tenant's operation is taken over on the table",
			in: "dynamo.Store.Take", old: `+ " AND " + equals(&$v, item.AttrTenant, ":tn", $t.Tenant, $args)`, new: "", run: dynamoTakes,
		},
		{
			rule: "ClaimCond", what: "memory: a claim over anything that isn't its own",
			in: "idem.MemoryStore.Claim", old: memClaim, new: `$old != nil && !$free && $old.Owner == $c.Next.Owner {`, pkg: suite, run: claims,
		},
		{
			rule: "ClaimSeen", what: "memory: a claim over a freed record that it hasn't seen",
			in: "idem.MemoryStore.Claim", old: "state.Over($old.Expires, $c.Now) && !state.Freed($old)", new: "state.Over($old.Expires, $c.Now)", pkg: suite, run: claims,
		},
		{
			rule: "ClaimSeen", what: "memory: a claim over what has changed since it was seen",
			in: "idem.MemoryStore.Claim", old: "!unchanged($old, $c.Seen)", new: "$c.Seen == nil", pkg: suite, run: claims,
		},
		{
			rule: "CWCCond", what: "memory: a claim with writes over anything",
			in: "idem.MemoryStore.Claim", old: memClaim,
			new: "$old != nil && len($c.Writes) == 0 && !$free && !unchanged($old, $c.Seen) {", run: "^TestMergedClaimConsultsTheRecord$",
		},
		{
			rule: "CommitOwner", what: "memory: anybody's commit",
			in: "idem.MemoryStore.Commit", old: memCommit, new: "case $old.Ver != $c.Prev.Ver:", pkg: suite, run: commits,
		},
		{
			rule: "CommitVer", what: "memory: a commit after any other",
			in: "idem.MemoryStore.Commit", old: memCommit, new: "case $old.Owner != $c.Prev.Owner:", pkg: suite, run: commits,
		},
		{
			rule: "TakeOwner", what: "memory: a take-over from whoever holds it",
			in: "idem.MemoryStore.Commit", old: memCommit,
			new: "case $old.Owner != $c.Prev.Owner && $c.Next.Owner == $c.Prev.Owner || $old.Ver != $c.Prev.Ver:", run: "^TestMemoryTakeOverIsConditional$",
		},
		{
			rule: "TakeVer", what: "memory: a take-over after any other write",
			in: "idem.MemoryStore.Commit", old: memCommit,
			new: "case $old.Owner != $c.Prev.Owner || $old.Ver != $c.Prev.Ver && $c.Next.Owner == $c.Prev.Owner:", run: "^TestMemoryTakeOverIsConditional$",
		},
		{
			rule: "JobEntry", what: "memory: a commit that stages a job brings delivered ones back",
			in: "idem.patched", where: "$next *store.Record", old: "if _, $known := $prev.Jobs[$id]; !$known {", new: "if len($next.Jobs) > len($prev.Jobs) {", pkg: suite, run: commits,
		},
		{
			rule: "ClaimCond", what: "a claim over anything",
			in: "dynamo.claimCondition", old: claim, new: `"attribute_not_exists(pk) OR attribute_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`, run: dynamoClaims,
		},
		{
			rule: "ClaimCond", what: "a claim over a record that hasn't expired, or is kept",
			in: "dynamo.claimCondition", old: claim, new: `"attribute_not_exists(pk) OR (exp_s <> :now AND NOT keep = :freed)"`, run: dynamoClaims,
		},
		{
			rule: "ClaimSeen", what: "a late copy of a claim revives an operation that was freed",
			in: "dynamo.claimCondition", old: claim, new: `"attribute_not_exists(pk) OR (exp_s < :now AND (keep = :freed OR NOT keep = :freed))"`, run: dynamoClaims,
		},
		{
			rule: "CWCCond", what: "a claim with writes over anything",
			in: "dynamo.Store.sendPut", old: claimTx, new: `Item: $put.Item, ConditionExpression: new(claimIf + " OR attribute_exists(pk)")`, run: "^TestMergedWritesAreConditional$",
		},
		{
			rule: "CommitOwner", what: "anybody's commit",
			in: "dynamo.holderCondition", old: holder, new: anyOwner, run: dynamoCommits,
		},
		{
			rule: "CommitVer", what: "a commit after any other",
			in: "dynamo.holderCondition", old: holder, new: anyVer, run: dynamoCommits,
		},
		{
			rule: "CommitOwner", what: "anybody's commit with writes",
			in: "dynamo.Store.sendUpdate", old: commitTx, new: "Key: $in.Key, ConditionExpression: new(" + anyOwner + ")", run: "^TestMergedWritesAreConditional$",
		},
		{
			rule: "CommitVer", what: "a commit with writes after any other",
			in: "dynamo.Store.sendUpdate", old: commitTx, new: "Key: $in.Key, ConditionExpression: new(" + anyVer + ")", run: "^TestMergedWritesAreConditional$",
		},
		{
			rule: "TakeOwner", what: "a take-over from whoever holds it",
			in: "dynamo.Store.commit", old: commit + "&$u.condition", new: commit + on(takeOver, anyOwner), run: "^TestTakeOverIsConditional$",
		},
		{
			rule: "TakeVer", what: "a take-over after any other write",
			in: "dynamo.Store.commit", old: commit + "&$u.condition", new: commit + on(takeOver, anyVer), run: "^TestTakeOverIsConditional$",
		},
		{
			rule: "TakeOwnerK", what: "a completer's take-over from whoever holds it",
			in: "dynamo.Store.commit", old: commit + "&$u.condition", new: commit + on(completer, anyOwner), run: "^TestTakeOverIsConditional$",
		},
		{
			rule: "TakeVer", what: "a completer's take-over after any other write",
			in: "dynamo.Store.commit", old: commit + "&$u.condition", new: commit + on(completer, anyVer), run: "^TestTakeOverIsConditional$",
		},
		{
			rule: "JobEntry", what: "a commit that stages a job writes the whole map",
			in: "dynamo.Store.update", old: "$u.addJobs($prev.Jobs, $next.Jobs)",
			new: `if len($next.Jobs) > len($prev.Jobs) { $u.put(item.AttrJobs, ":jobs", $u.Jobs($next.Jobs)) }`, run: dynamoCommits,
		},
		{
			rule: "JobEntry", what: "a commit that stages a job beside others writes the whole map",
			in: "dynamo.update.addJobs", old: firstJobs, new: strings.Replace(firstJobs, "== 0", ">= 0", 1), run: dynamoCommits,
		},
		{
			rule: "JobMap", what: "the first job is an entry of a map that isn't there",
			in: "dynamo.update.addJobs", old: firstJobs, new: strings.Replace(firstJobs, "== 0", "< 0", 1), pkg: "dynamo/stream", run: "^TestFirstJobsMeetLateWrites$", refused: true,
		},
		{
			rule: "JobMap", what: "a record without its map is kept for jobs",
			in: "dynamo/internal/item.Fields", old: "$d.jobs($r.Keep == store.KeepJobs)", new: "$d.jobs(false)", run: "^TestBadInput24CorruptRecord$",
		},
		{
			rule: "JobMap", what: "a record that is kept for jobs is written without the map",
			in: "dynamo/internal/item.Fields", old: "len($r.Jobs) == 0 && $r.Keep != store.KeepJobs", new: "len($r.Jobs) == 0", run: "^TestAttributesOfANewRecord$",
		},
		{
			rule: "LeaseGone", what: "a release removes the lease as a finish does",
			in: "dynamo/internal/item.Fields", old: "if $r.State == store.Done && $r.Lease.IsZero() {", new: "if $r.Lease.IsZero() {", pkg: "dynamo", run: dynamoCommits,
		},
		{
			rule: "LeaseGone", what: "an open record without a lease is read as released",
			in: "dynamo/internal/item.Fields", old: "$d.Milli(AttrLease, $r.State != store.Done)", new: "$d.Milli(AttrLease, false)", run: "^TestBadInput24CorruptRecord$",
		},
		{
			rule: "CallsAbsent", what: "the first call of a record is not counted",
			in: "internal/state.Tally", old: "$made = make(map[string]int, len($calls))", new: "return nil", pkg: "idem", run: "^TestDerivedKeysOfADeferredCall$",
		},
		{
			rule: "RunAbsent", what: "the first attempt has no begin",
			in: "dynamo/internal/item.Fields", old: "if $r.Run = $r.Created; $d.It[AttrRun] != nil {", new: "if $d.It[AttrRun] != nil {", run: "^TestRecordRoundTrip$",
		},
		{
			rule: "PlaceAll", what: "a record without jobs is never put into the index",
			in: "dynamo/stream.placeCondition", old: `"id = :id"`, new: "ackCondition", run: "^TestSweepPlacesWhatWaits$",
		},
		{
			rule: "TouchesWhatDiffers", what: "a commit writes the phases even where they don't differ",
			in: "dynamo/internal/item.Fields", old: "return slices.EqualFunc($prev.Phases, $next.Phases, SamePhase)", new: "return false", pkg: "dynamo", run: dynamoCommits,
		},
		{
			rule: "Region", what: "a record doesn't say where it was claimed",
			in: "dynamo.Store.Claim", old: "cmp.Or($c.Next.Region, $s.region)", new: "cmp.Or($c.Next.Region)", run: "^TestRegionOfTheClaim$",
		},
		{
			rule: "Inflate", what: "a body is inflated without a limit",
			in: "dynamo/internal/item.Inflate", old: "io.LimitReader($r, int64($limit)+1)", new: "$r", run: "^TestHostileBodiesAreRefused$",
		},
		{
			rule: "Inflate", what: "a body longer than any is taken",
			in: "dynamo/internal/item.Inflate", old: "case $out.Len() > $limit:", new: "case $out.Len() > $limit+1:", run: "^TestHostileBodiesAreRefused$",
		},
		{
			rule: "Inflate", what: "bytes after the end of a body are passed over",
			in: "dynamo/internal/item.Inflate", old: "case $from.Len() > 0:", new: "case $from.Len() > 1<<30:", run: "^TestHostileBodiesAreRefused$",
		},
		{
			rule: "Format", what: "a count of no tries is written",
			in: "dynamo/internal/item.Values.optional", old: "$n == 0", new: "$n < 0", pkg: "dynamo", run: "^TestFormat$",
		},
		{
			rule: "LayoutVersion", what: "records of a later layout are read as ours",
			in: "dynamo/internal/item.Decoder.layout", old: "$v != Layout {", new: `$v == "" {`,
			run: "^TestBadInput24CorruptRecord$",
		},
		{
			rule: "RFNow", what: "a read that decides may be old",
			in: "dynamo/internal/item.Table.load", old: "ConsistentRead: new(true)", new: "ConsistentRead: new(false)", pkg: "dynamo", run: "^TestReadsThatDecideAreStrong$",
		},
		{
			rule: "WholeAnswer", what: "a large request breaks the connection on which its answer comes",
			in: "dynamo.Tune", old: "$o.APIOptions = append($o.APIOptions, addReadBodies)", new: "_ = addReadBodies", run: "^TestAnswerBeforeTheBodysEnd$",
		},
	}
}
