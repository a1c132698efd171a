package main

// bodyMutants break how large bodies are kept beside their record.
func bodyMutants() []mutant {
	return []mutant{
		{
			rule: "Glance", what: "readers of the stream inflate bodies",
			in: "dynamo/internal/item.Decoder.body", old: "$b == nil || $d.bodiless {", new: "$b == nil {", pkg: "dynamo/stream", run: "^TestReadersInflateNoBody$",
		},
		{
			rule: "Glance", what: "readers of the stream inflate stored requests",
			in: "dynamo/internal/item.Decoder.input", old: "bodiless: $d.bodiless}", new: "}", pkg: "dynamo/stream", run: "^TestReadersInflateNoBody$",
		},
		{
			rule: "CompOwner", what: "companions have no nonce in their key",
			in: "dynamo.companionKey", old: `return $pk + "#" + $o.Owner + "#" + strconv`, new: `return $pk + "#" + "body" + "#" + strconv`,
			run: "^TestCompanionsAreTheAttemptsOwn$",
		},
		{
			rule: "CompTry", what: "another try of an attempt uses the same companions",
			in: "dynamo.Store.overflow", old: "First: $s.companions.Add(int64($count)) - int64($count),", new: "First: $s.companions.Load(),",
			run: "^TestCompanionsAreTheAttemptsOwn$",
		},
		{
			rule: "CompBefore", what: "the record says where its body is before it is there",
			in: "dynamo.Store.putCompanions", old: "if $err := $s.putChunks($ctx, $r.PK, $r.Overflow, $body, $end.Add(companionsOutlive), $box); $err != nil {",
			new: "var $err error; time.AfterFunc(100*time.Millisecond, func() { _ = $s.putChunks(context.WithoutCancel($ctx), $r.PK, $r.Overflow, $body, $end.Add(companionsOutlive), $box) }); if $err != nil {",
			run: "^TestBodyIsThereBeforeItsRecordSaysSo$",
		},
		{
			rule: "CompBefore", what: "a record says it has a body that could not be written",
			in: "dynamo.Store.putCompanions", old: `return fmt.Errorf("dynamo: write body: %w", $err)`, new: "return nil", run: "^TestCompanionRefusedOnceIsWrittenAgain$",
		},
		{
			rule: "CompOutlive", what: "companions expire with their record",
			in: "dynamo.Store.putCompanions", old: "$r.Overflow, $body, $end.Add(companionsOutlive), $box)", new: "$r.Overflow, $body, $end, $box)",
			run: "^TestCompanionsOutliveTheirRecord$",
		},
		{
			rule: "BodySum", what: "a body that isn't the one that was stored replays",
			in: "dynamo.Store.readBody", old: "|| sha256.Sum256($body) != $o.SHA256 {", new: "{", run: "^TestAlteredBodyDoesNotReplay$",
		},
		{
			rule: "BodyNotKept", what: "a missing part of a body is an empty one",
			in: "dynamo.Store.readBody", where: "$body := make", old: "if !$ok { return nil, fmt.Errorf",
			new: "if !$ok { return $body[:0:0], nil }; if !$ok { return nil, fmt.Errorf", run: "^TestSpoiltCompanions$",
		},
		{
			rule: "MissingRequest", what: "a request that is gone is run without its body",
			in: "idem.unattended.goOn", old: "case $missing != nil:", new: "case $missing != nil && len($missing.Error()) == 0:", pkg: "dynamo",
			run: "^TestStoredRequestThatIsGoneGetsStuck$",
		},
		{
			rule: "NoInputAtRest", what: "the parts of a large request stay after the answer",
			in: "dynamo.Store.tendInput", old: "_ = $s.dropChunks($ctx, $c.Prev.PK, $over)", new: "_ = $over", run: "^TestLargeStoredRequestIsResumedAndThenEmptied$",
		},
		{
			rule: "NoInputAtRest", what: "they stay where the answer of the finish was lost",
			in: "dynamo.Store.tendInput", old: "case !$supplied && ($held == nil || !refers($held, $over)):", new: "case !$supplied && $held == nil:",
			run: "^TestLostAnswersLeaveNothingOfTheRequest$",
		},
		{
			rule: "NoInputAtRest", what: "a claim that was not applied leaves the parts of its request",
			in: "dynamo.Store.keepInput", old: "case $err != nil: return $held, $err; case $held == nil:",
			new: "case $err != nil && !errors.Is($err, store.ErrUnknown): return $held, $err; case $held == nil:", run: "^TestLostAnswersLeaveNothingOfTheRequest$",
		},
		{
			rule: "LeftToTTL", what: "a request stays at rest though nobody asked for that",
			in: "dynamo.Store.leaves", old: "return $s.requests > 0 && $c.Next.Owner", new: "return $c.Next.Owner", run: "^TestLargeStoredRequestIsResumedAndThenEmptied$",
		},
		{
			rule: "LeftToTTL", what: "a request that is left is emptied all the same",
			in: "dynamo.Store.leaves", old: "return $s.requests > 0 &&", new: "return $s.requests < 0 &&", run: "^TestRequestLeftToTTL$",
		},
		{
			rule: "LeftToTTL", what: "the request of an operation that people forget stays",
			in: "dynamo.Store.leaves", old: "> 0 && $c.Next.Owner == $c.Prev.Owner", new: "> 0", run: "^TestOperatorsLeaveNoRequest$",
		},
		{
			rule: "LeftToTTL", what: "a request that is left stays for longer than the option says",
			in: "dynamo.Store.putInput", old: "cmp.Or($s.requests, state.KeepsRequest)", new: "max(cmp.Or($s.requests, state.KeepsRequest), state.KeepsRequest)", run: "^TestRequestLeftToTTL$",
		},
		{
			rule: "LeftToTTL", what: "a request may end while a completer still tries",
			in: "dynamo.New", old: "$opt.KeepRequests < minKeepRequests:", new: "$opt.KeepRequests < 0:", run: "^TestNewRefusesWhatCantWork$",
		},
		{
			rule: "Emptied", what: "the request of a stuck operation stays for as long as nobody decides",
			in: "internal/state.Emptied", old: "$r.Input = nil", new: "", pkg: "dynamo/stream", run: "^TestSweepEmptiesWhatNobodyDecides$",
		},
		{
			rule: "Emptied", what: "a request goes while its key is still remembered",
			in: "internal/state.RequestOutlived", old: "max($r.Retention, KeepsRequest)", new: "KeepsRequest", pkg: "dynamo/stream", run: "^TestSweepEmptiesWhatNobodyDecides$",
		},
		{
			rule: "Emptied", what: "a sweep that only lists removes requests",
			in: "dynamo/stream.Sweep.empty", old: "if $s.opt.MarkStuck == nil {\n return nil\n }", new: "", run: "^TestSweepEmptiesWhatNobodyDecides$",
		},
		{
			rule: "Erased", what: "an answer that was not kept stays bound to the caller who went",
			in: "internal/state.AnswerGoes", old: "(answerKept($prev) || $prev.Scope != $next.Scope)", new: "answerKept($prev)", pkg: "dynamo", run: "^TestErasedCallerOfAnAnswerThatWasNotKept$",
		},
		{
			rule: "Erased", what: "texts of errors stay",
			in: "internal/state.Erased", old: `$r.Handovers[$i].Err = ""`, new: "_ = $i", run: "^TestWhatChanges$",
		},
		{
			rule: "RequestOfTheClaim", what: "the request of a claim whose answer was lost lies where the record doesn't say",
			in: "dynamo.Store.keepInput", where: "$next, $held *store.Record", old: "$into, $box = missing($held.Input.Overflow), boxOf($held)",
			new: "$into, $box = missing($next.Input.Overflow), boxOf($held); $into.First += 1000", run: "^TestLargeRequestAfterALostClaimAnswer$",
		},
		{
			rule: "DropExists", what: "a part of a request that TTL has deleted comes back",
			in: "dynamo.Store.dropChunks", old: `aws.String("attribute_exists(pk)"),`, new: `aws.String("attribute_exists(pk) OR attribute_not_exists(pk)"),`,
			run: "^TestDeletedPartOfARequestStaysDeleted$",
		},
		{
			rule: "LeftToClient", what: "a completer that misses the request makes the operation stuck at once",
			in: "internal/state.LeftUntil", old: "return $r.Run.Add($r.Retention)", new: "return $r.Run", pkg: "dynamo",
			run: "^TestClaimThatDiesBeforeItsCompanion$",
		},
		{
			rule: "LeftToClient", what: "it never gets stuck, whoever has forgotten it",
			in: "internal/state.LeftUntil", old: "return $r.Run.Add($r.Retention)", new: "return $r.Run.Add(1000 * $r.Retention)", pkg: "dynamo",
			run: "^TestStoredRequestThatIsGoneGetsStuck$",
		},
		{
			rule: "RequestSupplied", what: "a client's retry doesn't bring the request that is missing",
			in: "idem.attempt.judgeOrTakeOver", old: "$a.life, $a.supplied($held.Input), $a.req.Handler",
			new: "$a.life, $held.Input, $a.req.Handler", pkg: "dynamo", run: "^TestClaimThatDiesBeforeItsCompanion$",
		},
		{
			rule: "CompPatience", what: "a body is given up with the first refusal",
			in: "dynamo.Store.putChunks", old: "if item.Overdue($ctx) || !item.Pause($ctx, $round) { return fmt.Errorf", new: "if item.Overdue($ctx) || $round > 0 { return fmt.Errorf",
			run: "^TestCompanionsWaitOutAThrottle$",
		},
		{
			rule: "CompOnce", what: "each try of a finish writes its body again",
			in: "idem.flow.finish", old: "$made.Overflow = $f.kept", new: "_ = $f.kept", pkg: "dynamo", run: "^TestFinishTriedAgainWritesItsBodyOnce$",
		},
		{
			rule: "CompOnce", what: "a finish that ran again has the body of the run before",
			in: "idem.flow.finish", old: "case $f.kept != nil && $f.kept.SHA256 == sha256.Sum256($resp.Body):",
			new: "case $f.kept != nil && $f.kept.SHA256 != sha256.Sum256(nil):", pkg: "dynamo", run: "^TestFinishThatRunsAgainStoresItsOwnBody$",
		},
		{
			rule: "BatchInPart", what: "what a batch leaves out is not sent again",
			in: "dynamo.Store.write", old: "return slices.Concat(slices.Collect(maps.Values($out.UnprocessedItems))...), nil", new: "_ = $out; return nil, nil",
			run: "^TestBatchesOfCompanions$",
		},
		{
			rule: "StoredLimit", what: "a request is stored that no reader takes",
			in: "dynamo.Store.Claim", old: "$n > item.MaxStored {", new: "$n > 2*item.MaxStored {", run: "^TestLargestStoredRequest$",
		},
		{
			rule: "StoredLimit", what: "a request is claimed that can't be stored",
			in: "idem.storable", old: "case len($in.Body) > $maxInput:", new: "case len($in.Body) > 2*$maxInput:",
			run: "^TestRequestThatCannotBeStoredIsRefused$",
		},
	}
}

// writeMutants break what is asked of the user's own writes.
func writeMutants() []mutant {
	const bad = "^TestBadInput30WritesThatCannotCommit$"
	return []mutant{
		{
			rule: "CapacityPasses", what: "a transaction cancelled for want of capacity is final",
			in: "dynamo.passing", old: `"ThrottlingError", "ProvisionedThroughputExceeded",`, new: "", run: "^TestCancelledForWantOfCapacityIsSentAgain$",
		},
		{
			rule: "RegionConflict", what: "a conflict with another Region is final",
			in: "dynamo/internal/item.writeError", old: `[*types.ReplicatedWriteConflictException]($err); $ok { return nil, fmt.Errorf("dynamo: %s: %w: %w", $op, store.ErrConflict, $err)`,
			new: `[*types.ReplicatedWriteConflictException]($err); $ok { return nil, fmt.Errorf("dynamo: %s: %w", $op, $err)`,
			pkg: "dynamo", run: "^TestConflictWithAnotherRegionIsSentAgain$",
		},
		{
			rule: "WriteMistake", what: "a mistake in a write is the store's, to be tried again",
			in: "dynamo.Store.transact", where: "$mine []*Write", old: "if item.Invalid($err) {", new: "if item.Invalid($err) && len($mine) == 0 {",
			run: "^TestMistakesTheServiceFinds$", refused: true,
		},
		{
			rule: "WriteMistake", what: "a placeholder that stands for nothing is sent",
			in: "dynamo.Write.Err", old: "$err = $w.placeholders()", new: "_ = $w.placeholders()", run: bad, refused: true,
		},
		{
			rule: "WriteMistake", what: "a handler's test passes with writes that no table takes",
			in: "idem.MemoryStore.apply", where: "func ($m *MemoryStore)", old: "$writes[0].(store.CommitChecker); $ok {",
			new: "$writes[0].(store.CommitChecker); $ok && $m == nil {", pkg: "dynamo", run: bad, refused: true,
		},
		{
			rule: "ReadCheck", what: "what was read isn't checked at the commit: write skew",
			in: "dynamo.Get", old: "$tx.Write(asRead($table, $k, $read, len($res.Item) > 0))", new: "_ = asRead($table, $k, $read, len($res.Item) > 0)",
			run: "^TestWriteSkewIsRefused$",
		},
		{
			rule: "ReadCheck", what: "an attribute that comes into being isn't noticed",
			in: "dynamo.Get", old: "if _, $there := $res.Item[$name]; !$there {", new: `if _, $there := $res.Item[$name]; !$there && $name == "" {`,
			run: "^TestGetChecksEveryAttribute$",
		},
		{
			rule: "ReadCheck", what: "an item that comes into being isn't noticed",
			in: "dynamo.Get", old: "for $name := range $k { $read[$name] = nil }", new: "return false, nil", run: "^TestGetChecksEveryAttribute$",
		},
		{
			rule: "ReadCheck", what: "an item with its key alone may be deleted unnoticed",
			in: "dynamo.asRead", where: "$key, $read item.Map", old: "if $found && !$values {", new: "if $found && !$values && len($key) == 0 {",
			run: "^TestGetChecksEveryAttribute$",
		},
		{
			rule: "ReadCheckFolded", what: "what was read of an item that is also written isn't checked",
			in: "dynamo.joined", old: "$folded, $err := merge($out[$i], $w)",
			new: `if $out[$i].verb == "check" { $out[$i] = $w; continue }; $folded, $err := merge($out[$i], $w)`, run: "^TestReadModifyWriteUnderContention$",
		},
		{
			rule: "ConditionOrChange", what: "a change of what was read is told as a false condition",
			in: "dynamo.why", old: "if !$w.still($r.Item) {", new: "if $w.read != nil && len($r.Item) < 0 {", run: "^TestConditionAndChangeAreToldApart$",
		},
		{
			rule: "ConditionOrChange", what: "a false condition is told as a change",
			in: "dynamo.why", old: "if !$w.still($r.Item) {", new: "if $w.read != nil {", run: "^TestConditionAndChangeAreToldApart$",
		},
		{
			rule: "RecordReasonFirst", what: "the user's condition, untrue after a lost answer, is told before the record's",
			in:  "dynamo.why",
			old: "for _, $r := range $reasons[:$records] {",
			new: `
				others := slices.ContainsFunc($reasons[$records:], func(r types.CancellationReason) bool {
					return aws.ToString(r.Code) == "ConditionalCheckFailed"
				})
				for _, $r := range $reasons[:$records] {
					if others { break }`,
			run: "^TestRecordsReasonIsToldFirst$",
		},
		{
			rule: "ConflictFirst", what: "a false condition is told though a conflict may have made it so",
			in: "dynamo.why", old: "case $conflict != nil: return nil, $conflict; case $condition != nil: return nil, $condition",
			new: "case $condition != nil: return nil, $condition; case $conflict != nil: return nil, $conflict", run: "^TestConflictIsToldBeforeACondition$",
		},
		{
			rule: "ConflictFirst", what: "a record beside is told, though a conflict hides the key's own",
			in: "dynamo.why", old: "case slices.Contains(passing, $code): return nil, fmt.Errorf(", new: `case $code == "": return nil, fmt.Errorf(`,
			where: "$records int", run: "^TestConflictIsToldBeforeTheRecordBeside$",
		},
		{
			rule: "SizeLimit", what: "more than 100 items are sent",
			in: "dynamo.checkSize", old: "$n > maxItems {", new: "$n < 0 {", run: bad, refused: true,
		},
		{
			rule: "SizeLimit", what: "more than 4 MB are sent",
			in: "dynamo.checkSize", old: "if $total > maxTransaction {", new: "if $total < 0 {", run: bad, refused: true,
		},
		{
			rule: "SizeLimit", what: "an item of more than 400 KB is sent",
			in: "dynamo.checkSize", old: "if $size > maxItem {", new: "if $size < 0 {", run: bad, refused: true,
		},
		{
			rule: "OwnTable", what: "the user's writes reach records",
			in: "dynamo.Store.fold", old: "plainName($w.table) == plainName($s.table) {", new: `plainName($w.table) == "" {`, run: bad,
		},
		{
			rule: "ForeignWrite", what: "another store's write is left out in silence",
			in: "dynamo.joined", where: "$one := range", old: "case !$ok:", new: "case !$ok && $one != nil: continue; case !$ok:", run: bad,
		},
		{
			rule: "InParts", what: "all companions of a body are in one call",
			in: "dynamo.Store.batch", old: "return atOnce", new: "return maxBatch", run: "^TestLargestStoredRequest$",
		},
	}
}
