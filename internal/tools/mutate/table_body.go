package main

// bodyMutants break how large bodies are kept beside their record.
func bodyMutants() []mutant {
	const body, chunks, input = "dynamo/body.go", "dynamo/chunks.go", "dynamo/input.go"
	return []mutant{
		{
			rule: "CompOwner", what: "companions have no nonce in their key",
			file: body, old: `return pk + "#" + o.Owner + "#" + strconv`, new: `return pk + "#" + "body" + "#" + strconv`, run: "^TestCompanionsAreTheAttemptsOwn$",
		},
		{
			rule: "CompTry", what: "another try of an attempt uses the same companions",
			file: body, old: "First: s.companions.Add(int64(count)) - int64(count),", new: "First: s.companions.Load(),", run: "^TestCompanionsAreTheAttemptsOwn$",
		},
		{
			rule: "CompBefore", what: "the record says where its body is before it is there",
			file: body, old: "if err := s.putChunks(ctx, r.PK, r.Overflow, body, end.Add(companionsOutlive)); err != nil {",
			new: "var err error\n\ttime.AfterFunc(100*time.Millisecond, func() {\n\t\t_ = s.putChunks(context.WithoutCancel(ctx), r.PK, r.Overflow, body, end.Add(companionsOutlive))\n\t})\n\tif err != nil {",
			run: "^TestBodyIsThereBeforeItsRecordSaysSo$",
		},
		{
			rule: "CompBefore", what: "a record says it has a body that could not be written",
			file: body, old: "\t\treturn fmt.Errorf(\"dynamo: write body: %w\", err)\n", new: "\t\treturn nil\n", run: "^TestCompanionRefusedOnceIsWrittenAgain$",
		},
		{
			rule: "CompOutlive", what: "companions expire with their record",
			file: body, old: "r.Overflow, body, end.Add(companionsOutlive))", new: "r.Overflow, body, end)", run: "^TestCompanionsOutliveTheirRecord$",
		},
		{
			rule: "BodySum", what: "a body that isn't the one that was stored replays",
			file: body, old: " || sha256.Sum256(body) != o.SHA256 {", new: " {", run: "^TestAlteredBodyDoesNotReplay$",
		},
		{
			rule: "BodyNotKept", what: "a missing part of a body is an empty one",
			file: body, old: "\t\tif !ok {\n\t\t\treturn nil, fmt.Errorf", new: "\t\tif !ok {\n\t\t\treturn body[:0:0], nil\n\t\t}\n\t\tif !ok {\n\t\t\treturn nil, fmt.Errorf", run: "^TestSpoiltCompanions$",
		},
		{
			rule: "MissingRequest", what: "a request that is gone is run without its body",
			file: "idem/resume.go", old: "\tcase missing != nil:\n", new: "\tcase missing != nil && rec == nil:\n",
			pkg: "dynamo", run: "^TestStoredRequestThatIsGoneGetsStuck$",
		},
		{
			rule: "NoInputAtRest", what: "the parts of a large request stay after the answer",
			file: input, old: "\t\ts.dropChunks(ctx, c.Prev.PK, over)\n", new: "\t\t_ = over\n", run: "^TestLargeStoredRequestIsResumedAndThenEmptied$",
		},
		{
			rule: "NoInputAtRest", what: "they stay where the answer of the finish was lost",
			file: input, old: "case !supplied && (held == nil || !refers(held, over)):", new: "case !supplied && held == nil:",
			run: "^TestLostAnswersLeaveNothingOfTheRequest$",
		},
		{
			rule: "NoInputAtRest", what: "a claim that was not applied leaves the parts of its request",
			file: input, old: "\tcase err != nil:\n\t\treturn held, err\n\tcase held == nil:", new: "\tcase err != nil && !errors.Is(err, idem.ErrUnknown):\n\t\treturn held, err\n\tcase held == nil:",
			run: "^TestLostAnswersLeaveNothingOfTheRequest$",
		},
		{
			rule: "RequestOfTheClaim", what: "the request of a claim whose answer was lost lies where the record doesn't say",
			file: input, old: "into = missing(held.Input.Overflow)", new: "into = missing(next.Input.Overflow)\n\t\tinto.First += 1000", run: "^TestLargeRequestAfterALostClaimAnswer$",
		},
		{
			rule: "DropExists", what: "a part of a request that TTL has deleted comes back",
			file: chunks, old: `aws.String("attribute_exists(pk)"),`, new: `aws.String("attribute_exists(pk) OR attribute_not_exists(pk)"),`,
			run: "^TestDeletedPartOfARequestStaysDeleted$",
		},
		{
			rule: "LeftToClient", what: "a completer that misses the request makes the operation stuck at once",
			file: "idem/state.go", old: "return now.Before(held.Run.Add(retention))", new: "return now.Before(held.Run)", pkg: "dynamo", run: "^TestClaimThatDiesBeforeItsCompanion$",
		},
		{
			rule: "LeftToClient", what: "it never gets stuck, whoever has forgotten it",
			file: "idem/state.go", old: "return now.Before(held.Run.Add(retention))", new: "return now.Before(held.Run.Add(1000 * retention))",
			pkg: "dynamo", run: "^TestStoredRequestThatIsGoneGetsStuck$",
		},
		{
			rule: "RequestSupplied", what: "a client's retry doesn't bring the request that is missing",
			file: "idem/claim.go", old: "next.Input = a.supplied(held.Input)", new: "next.Input = held.Input", pkg: "dynamo", run: "^TestClaimThatDiesBeforeItsCompanion$",
		},
		{
			rule: "CompPatience", what: "a body is given up with the first refusal",
			file: chunks, old: "\t\t\tif overdue(ctx) || !pause(ctx, round) {\n\t\t\t\treturn fmt.Errorf", new: "\t\t\tif overdue(ctx) || round > 0 {\n\t\t\t\treturn fmt.Errorf",
			run: "^TestCompanionsWaitOutAThrottle$",
		},
		{
			rule: "CompOnce", what: "each try of a finish writes its body again",
			file: "idem/flow_commit.go", old: "made.Overflow = f.kept // ", new: "_ = f.kept // ", pkg: "dynamo", run: "^TestFinishTriedAgainWritesItsBodyOnce$",
		},
		{
			rule: "CompOnce", what: "a finish that ran again has the body of the run before",
			file: "idem/flow_commit.go", old: "case f.kept != nil && f.kept.SHA256 == sha256.Sum256(resp.Body):", new: "case f.kept != nil && f.kept.SHA256 != sha256.Sum256(nil):",
			pkg: "dynamo", run: "^TestFinishThatRunsAgainStoresItsOwnBody$",
		},
		{
			rule: "BatchInPart", what: "what a batch leaves out is not sent again",
			file: chunks, old: "return slices.Concat(slices.Collect(maps.Values(out.UnprocessedItems))...), nil", new: "_ = out\n\t\t\treturn nil, nil", run: "^TestBatchesOfCompanions$",
		},
		{
			rule: "StoredLimit", what: "a request is stored that no reader takes",
			file: "dynamo/store.go", old: "n > maxStored {", new: "n > 2*maxStored {", run: "^TestLargestStoredRequest$",
		},
		{
			rule: "StoredLimit", what: "a request is claimed that can't be stored",
			file: "idem/input.go", old: "case len(in.Body) > MaxStoredRequest:", new: "case len(in.Body) > 2*MaxStoredRequest:", run: "^TestRequestThatCannotBeStoredIsRefused$",
		},
	}
}

// writeMutants break what is asked of the user's own writes.
func writeMutants() []mutant {
	const transact, get, bad = "dynamo/transact.go", "dynamo/get.go", "^TestBadInput30WritesThatCannotCommit$"
	return []mutant{
		{
			rule: "CapacityPasses", what: "a transaction cancelled for want of capacity is final",
			file: transact, old: `case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded", "DuplicateItem":`,
			new: `case "TransactionConflict", "DuplicateItem":`, run: "^TestCancelledForWantOfCapacityIsSentAgain$",
		},
		{
			rule: "RegionConflict", what: "a conflict with another Region is final",
			file: "dynamo/errors.go",
			old:  "[*types.ReplicatedWriteConflictException](err); ok {\n\t\treturn nil, fmt.Errorf(\"dynamo: %s: %w: %w\", op, idem.ErrConflict, err)",
			new:  "[*types.ReplicatedWriteConflictException](err); ok {\n\t\treturn nil, fmt.Errorf(\"dynamo: %s: %w\", op, err)",
			run:  "^TestConflictWithAnotherRegionIsSentAgain$",
		},
		{
			rule: "WriteMistake", what: "a mistake in a write is the store's, to be tried again",
			file: transact, old: "\tif invalid(err) {\n", new: "\tif invalid(err) && len(mine) == 0 {\n", run: "^TestMistakesTheServiceFinds$", refused: true,
		},
		{
			rule: "WriteMistake", what: "a placeholder that stands for nothing is sent",
			file: "dynamo/write.go", old: "\t\terr = w.placeholders()\n", new: "\t\t_ = w.placeholders()\n", run: bad, refused: true,
		},
		{
			rule: "WriteMistake", what: "a handler's test passes with writes that no table takes",
			file: "idem/memory.go", old: "\tif err := checkWrites(writes); err != nil {", new: "\tif err := checkWrites(writes); err != nil && m == nil {", pkg: "dynamo", run: bad, refused: true,
		},
		{
			rule: "ReadCheck", what: "what was read isn't checked at the commit: write skew",
			file: get, old: "\ttx.Write(asRead(table, k, read, len(res.Item) > 0))\n", new: "\t_ = asRead(table, k, read, len(res.Item) > 0)\n",
			run: "^TestWriteSkewIsRefused$",
		},
		{
			rule: "ReadCheck", what: "an attribute that comes into being isn't noticed",
			file: get, old: "if _, there := res.Item[name]; !there {", new: "if _, there := res.Item[name]; !there && name == \"\" {", run: "^TestGetChecksEveryAttribute$",
		},
		{
			rule: "ReadCheck", what: "an item that comes into being isn't noticed",
			file: get, old: "\t\tfor name := range k {\n\t\t\tread[name] = nil\n\t\t}\n", new: "\t\treturn false, nil\n", run: "^TestGetChecksEveryAttribute$",
		},
		{
			rule: "ReadCheck", what: "an item with its key alone may be deleted unnoticed",
			file: get, old: "if found && !values {", new: "if found && !values && len(key) == 0 {", run: "^TestGetChecksEveryAttribute$",
		},
		{
			rule: "ReadCheckFolded", what: "what was read of an item that is also written isn't checked",
			file: transact, old: "\t\tfolded, err := merge(out[i], w)\n", new: "\t\tif out[i].verb == \"check\" {\n\t\t\tout[i] = w\n\t\t\tcontinue\n\t\t}\n\t\tfolded, err := merge(out[i], w)\n",
			run: "^TestReadModifyWriteUnderContention$",
		},
		{
			rule: "ConditionOrChange", what: "a change of what was read is told as a false condition",
			file: transact, old: "if w.read != nil && !w.still(r.Item) {", new: "if w.read != nil && len(r.Item) < 0 {", run: "^TestConditionAndChangeAreToldApart$",
		},
		{
			rule: "ConditionOrChange", what: "a false condition is told as a change",
			file: transact, old: "if w.read != nil && !w.still(r.Item) {", new: "if w.read != nil {", run: "^TestConditionAndChangeAreToldApart$",
		},
		{
			rule: "RecordReasonFirst", what: "the user's condition, untrue after a lost answer, is told before the record's",
			file: transact,
			old: `	if deref(reasons[0].Code) == "ConditionalCheckFailed" {
		if len(reasons[0].Item) == 0 {
			return &idem.Record{}, nil
		}
		return decode(reasons[0].Item)
	}
	var conflict, condition error
	for i, r := range reasons {
`,
			new: `	var conflict, condition error
	if deref(reasons[0].Code) == "ConditionalCheckFailed" && !slices.ContainsFunc(reasons[1:], func(r types.CancellationReason) bool {
		return deref(r.Code) == "ConditionalCheckFailed"
	}) {
		return decode(reasons[0].Item)
	}
	for i, r := range reasons {
		if i == 0 {
			continue
		}
`,
			run: "^TestRecordsReasonIsToldFirst$",
		},
		{
			rule: "ConflictFirst", what: "a false condition is told though a conflict may have made it so",
			file: transact, old: "\tcase conflict != nil:\n\t\treturn nil, conflict\n\tcase condition != nil:\n\t\treturn nil, condition\n",
			new: "\tcase condition != nil:\n\t\treturn nil, condition\n\tcase conflict != nil:\n\t\treturn nil, conflict\n", run: "^TestConflictIsToldBeforeACondition$",
		},
		{
			rule: "SizeLimit", what: "more than 100 items are sent",
			file: transact, old: "n > maxItems {", new: "n < 0 {", run: bad, refused: true,
		},
		{
			rule: "SizeLimit", what: "more than 4 MB are sent",
			file: transact, old: "if total > maxTransaction {", new: "if total < 0 {", run: bad, refused: true,
		},
		{
			rule: "SizeLimit", what: "an item of more than 400 KB is sent",
			file: transact, old: "if size > maxItem {", new: "if size < 0 {", run: bad, refused: true,
		},
		{
			rule: "OwnTable", what: "the user's writes reach records",
			file: transact, old: "w.Err() == nil && plainName(w.table) == plainName(s.table) {", new: "w.Err() == nil && plainName(w.table) == \"\" {", run: bad,
		},
		{
			rule: "ForeignWrite", what: "another store's write is left out in silence",
			file: transact, old: "\t\tcase !ok:\n", new: "\t\tcase !ok && one != nil:\n\t\t\tcontinue\n\t\tcase !ok:\n", run: bad,
		},
	}
}
