package main

// foundMutants are mutants made by hand from outside of this table, which survived once.
func foundMutants() []mutant {
	return []mutant{
		{
			rule: "Found", what: "a cached answer that is kept for its jobs never expires",
			in: "idem.cache.put", old: "$answer.Expires = $r.Until", new: "", run: "^TestCachedAnswerOfARecordWithJobsExpires$",
		},
		{
			rule: "Found", what: "a call that asked for no key is not in doubt",
			in: "idem.calls.out", old: "$c.entered && len($out) == 0 || $left", new: "$left", run: "^TestFailedCallLeavesADoubt$",
		},
		{
			rule: "Found", what: "a body of which a part was read before passes for the whole",
			in: "idem.readBefore", old: "int64(len($body)) < $r.ContentLength || ", new: "", run: "^TestBodyPartlyReadIsRefused$",
		},
		{
			rule: "Found", what: "a call that had no effect stays in doubt",
			in: "idem.phaseRun.outcome", old: "$p.log.recorded($got.calls)", new: "", run: "^TestFailedCallLeavesADoubt$",
		},
		{
			rule: "Found", what: "a call that can't be repeated and had no effect stays in doubt",
			in: "idem.phaseRun.endIntent", old: "$p.log.recorded($got.calls)", new: "", run: "^TestFailedCallLeavesADoubt$",
		},
		{
			rule: "Found", what: "the worker gives up operations of its first namespace only",
			in: "lambda/worker.markStuck", old: "_, $e := range $engines", new: "_, $e := range $engines[:1]", run: "^TestGivesUpInItsNamespaces$",
		},
		{
			rule: "Found", what: "an answer with another status passes for the one that was made",
			in: "idem.samePayload", old: "$rec.Response.Status == $made.Response.Status && ", new: "", run: "^TestSamePayload$",
		},
		{
			rule: "Found", what: "the parts of a body that is kept for its jobs expire at once",
			in: "dynamo.Store.putCompanions", old: "if $end.Before($r.Until) { $end = $r.Until }", new: "", run: "^TestPartsOfABody$",
		},
		{
			rule: "Found", what: "a changed item is told as a failed condition, which ends the phase",
			in: "dynamo.Write.still", old: "return false", new: "return true", run: "^TestWriteSkewIsRefused$",
		},
		{
			rule: "Found", what: "the parts of a body are read weakly, as a batch",
			in: "dynamo.Store.getChunks", old: "Keys: $keys, ConsistentRead: aws.Bool(true)", new: "Keys: $keys", run: "^TestPartsOfABody$",
		},
		{
			rule: "Found", what: "the parts of a body are read weakly, one by one",
			in: "dynamo.Store.getChunks", old: "Key: $k, ConsistentRead: aws.Bool(true)", new: "Key: $k", run: "^TestPartsOfABody$",
		},
		{
			rule: "Found", what: "a job is held back by one of another group",
			in: "dynamo/stream.Drain.ahead", old: "$o.Group != $later.Group, ", new: "", run: "^TestJobWaitsForItsGroupOnly$",
		},
		{
			rule: "Found", what: "a completer takes a 5xx that was not stored for the operation's answer",
			in: "idem.unattended.goOn", old: "$err == nil && $res.Expires.IsZero()", new: "false", run: "^TestCompleterDoesntTakeAnUnstoredAnswer$",
		},
		{
			rule: "Found", what: "a data key past MaxAge stays in memory",
			in: "seal.Sealer.evict", old: "$o.key != nil && $s.old($o.key, $now)", new: "$o == nil", run: "^TestOldKeysAreForgotten$",
		},
		{
			rule: "Found", what: "a data key past MaxAge opens records",
			in: "seal.Sealer.entry", old: "$o.key == nil || !$s.old($o.key, $now)", new: "true", run: "^TestSealerKeepsOpenedKeys$",
		},
		{
			rule: "Found", what: "a data key past MaxAge seals records",
			in: "seal.Sealer.good", old: "$s.old($k, wall())", new: "false", run: "^TestSealerKeepsADataKey$",
		},
	}
}
