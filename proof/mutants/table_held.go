package main

// heldMutants break requirements that no test held once.
func heldMutants() []mutant {
	const whole, resumed = "^TestFingerprintCoversTheWholeBody$", "^TestResumedEventIsTheFirst$"
	return []mutant{
		{
			rule: "WholeBody", what: "the fingerprint covers the first 4,096 bytes of a body",
			in: "idem.digestOf", old: "$h.Write($small); $h.Write($body)", new: "$h.Write($small); $h.Write($body[:min(len($body), 4096)])", pkg: "idem", run: "^TestFingerprintCoversTheWholeBody$",
		},
		{
			rule: "WholeBody", what: "the fingerprint covers the first 64 KB of canonical JSON",
			in: "idem.Fingerprint.digest", old: "$tag, $body = 'j', $canonical", new: "$tag, $body = 'j', $canonical[:min(len($canonical), 64<<10)]", run: whole,
		},
		{
			rule: "WholeBody", what: "the fingerprint covers the first megabyte of a form",
			in: "idem.Fingerprint.digest", old: "$tag, $body = 'x', $form", new: "$tag, $body = 'x', $form[:min(len($form), 1<<20)]", run: whole,
		},
		{
			rule: "WholeBody", what: "the last byte doesn't count",
			in: "idem.digestOf", old: "$h.Write($small); $h.Write($body)", new: "$h.Write($small); $h.Write($body[:max(0, len($body)-1)])", pkg: "idem", run: "^TestFingerprintCoversTheWholeBody$",
		},
		{
			rule: "ResumedEvent", what: "a request is run again without its query",
			in: "idem.requestOf", old: "Query: $in.Query, ", new: "", pkg: "proof/calls", run: resumed,
		},
		{
			rule: "ResumedEvent", what: "a request is run again without what its gateway verified, and without its path's parameters",
			in: "idem.inputOf", where: "($r *Request, $headers []string)", old: "Snapshot: $r.Snapshot, ", new: "", pkg: "proof/calls", run: resumed,
		},
		{
			rule: "ResumedEvent", what: "a request is run again without the headers that are asked for",
			in: "idem.requestOf", old: "Header: maps.Clone($in.Header),", new: "Header: maps.Clone(http.Header{}),", pkg: "proof/calls", run: resumed,
		},
		{
			rule: "ResumedEvent", what: "an item loses what the gateway verified",
			in: "dynamo/internal/item.Values.Input", old: "len($in.Snapshot) > 0", new: "len($in.Snapshot) > 1<<20", pkg: "proof/calls", run: resumed,
		},
		{
			rule: "ResumedEvent", what: "an encrypted record loses what the gateway verified",
			in: "dynamo/internal/item.unpackRequest", old: ", Snapshot: $h.Snapshot", new: "", pkg: "proof/calls", run: resumed,
		},
		{
			rule: "ResumedEvent", what: "a request is run again without its stage's variables",
			in: "lambda.httpAPISnapshot", old: "StageVariables: $ev.StageVariables,", new: "", pkg: "proof/calls", run: resumed,
		},
		{
			rule: "ResumedEvent", what: "a request of a REST API is run again without its path's parameters",
			in: "lambda.restRequestSnapshot", old: "PathParameters: $ev.PathParameters,", new: "", pkg: "proof/calls", run: resumed,
		},
		{
			rule: "ResumedEvent", what: "a request of a function URL is run again without its caller",
			in: "lambda.functionURLSnapshot", old: "UserARN: $iam.UserARN, ", new: "", pkg: "proof/calls", run: resumed,
		},
		{
			rule: "FinalUnknown", what: "the last attempt's 500 passes for the operation's outcome",
			in: "idem/client.operation.settles", old: "$resp.StatusCode < http.StatusInternalServerError", new: "$resp.StatusCode <= http.StatusInternalServerError",
			run: "^TestOutcomes$",
		},
		{
			rule: "CorruptIsAnswered", what: "a record in an unknown state is anything but corrupt",
			in: "internal/state.Corrupt", where: "($r *store.Record)", old: "return !$known ||", new: `return !$known && $r.Owner == "" ||`, pkg: "lambda", run: "^TestCORSOfOwnAnswers$",
		},
		{
			rule: "CorruptIsAnswered", what: "a finished record without an answer is anything but corrupt",
			in: "internal/state.Corrupt", old: "|| $r.State == store.Done && $r.Response == nil", new: "", pkg: "lambda", run: "^TestCORSOfOwnAnswers$",
		},
		{
			rule: "ConflictAnswered", what: "a conflict that lasts is an internal error to the client",
			in: "idem.problems", old: `{ErrConflict, Problem{ Status: 409,`, new: `{ErrConflict, Problem{ Status: 500,`, run: "^TestConflictsThatLastAreAnswered$",
		},
		{
			rule: "ConflictAnswered", what: "a phase in a conflict runs once",
			in: "idem.phaseRun.atomic", old: "!errors.Is($err, ErrConflict) ||", new: "$err != nil ||", run: "^TestAtomicRunsAgainAfterAConflict$",
		},
		{
			rule: "ServersID", what: "derived keys are made of the record's key, which is the client's",
			in: "idem.progress.id", old: "return $rec.ID", new: "return $rec.PK", run: "^TestDerivedKeysAreOfTheServersID$",
		},
		{
			rule: "ServersID", what: "each attempt derives other keys",
			in: "idem.progress.id", old: "if $rec := $p.record(); $rec != nil { return $rec.ID }", new: "", run: "^TestDerivedKeysAreOfTheServersID$",
		},
		{
			rule: "ExpiredIsNew", what: "an expired answer is replayed as long as the table keeps it",
			in: "internal/state.Judge", old: "case Free($held, $now):", new: "case Over($held.Expires, $now) && $held.State != store.Done:", run: "^TestJudgeExhaustively$",
		},
		{
			rule: "HandledNotKept", what: "a webhook that was handled comes again for ever, since its answer was not kept",
			in: "idem/webhook.done", old: "errors.Is($err, idem.ErrExpired) || errors.Is($err, idem.ErrNotKept)", new: "errors.Is($err, idem.ErrExpired)",
			run: "^TestSameEvent$",
		},
		{
			rule: "StuckIsKnown", what: "a ticket is dropped as stuck though the record may say otherwise",
			in:  "lambda/internal/envelope.OutcomeOf",
			old: "case errors.Is($err, idem.ErrUnavailable), errors.Is($err, store.ErrUnknown), errors.Is($err, idem.ErrConflict):",
			new: "case errors.Is($err, idem.ErrConflict): case errors.Is($err, idem.ErrUnavailable), errors.Is($err, store.ErrUnknown): return Outcome{Kind: Stuck}",
			pkg: "lambda", run: "^TestTicketIsKeptUntilTheRecordIsStuck$",
		},
		{
			rule: "CheckHolds", what: "a check lets the phase commit whatever its condition says",
			in: "dynamo.Check", old: "return $w.If($cond, $args...)", new: `return $w.If("attribute_exists(id) OR attribute_not_exists(id)")`, run: "^TestCheck$",
		},
		{
			rule: "RawUnchanged", what: "a write of the SDK may get a condition that is never sent",
			in: "dynamo.Write.If", where: "func ($w *Write)", old: "if $w.raw != nil {", new: "if $w.raw != nil && $w.table == \"\" {", run: "^TestRaw$",
		},
	}
}
