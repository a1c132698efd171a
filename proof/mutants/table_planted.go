package main

// planted are ten bugs, one a layer. Each loses work, does it twice or gives a wrong
// answer, so that simulation, traces and crash matrix have to find it, though none of
// them knows the line.
func planted() []bug {
	const (
		memClaim  = "$old != nil && !$free && !unchanged($old, $c.Seen) {"
		memCommit = "case $old.Owner != $c.Prev.Owner || $old.Ver != $c.Prev.Ver:"

		oneKey = "its histories are of one key of one caller"
		engine = "it follows the engine's calls to the store, and neither deliveries nor who makes tickets"
	)
	return []bug{
		{
			layer: "claim", mutant: mutant{
				rule: "claim", what: "a claim over any record",
				in: "dynamo.claimCondition", old: `"attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`,
				new: `"attribute_not_exists(pk) OR attribute_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`,
			},
			memory: &mutant{in: "idem.MemoryStore.Claim", old: memClaim, new: `$old != nil && $old.PK == "" && !$free {`},
		},
		{
			layer: "commit", mutant: mutant{
				rule: "commit", what: "a commit over any holder and any version",
				in: "dynamo.holderCondition", old: `"#owner = :owner AND ver = :ver"`, new: `"(#owner = :owner OR #owner <> :owner) AND (ver = :ver OR ver <> :ver)"`,
			},
			memory: &mutant{in: "idem.MemoryStore.Commit", old: memCommit, new: "case $old.Owner != $c.Prev.Owner && $old.PK == $c.Prev.Owner:"},
		},
		{
			layer: "fingerprint", mutant: mutant{
				rule: "fingerprint", what: "another request under the same key is answered as the first",
				in: "internal/state.Judge", where: "$held *store.Record", old: "case !$same:", new: "case !$same && $held == nil:",
			},
		},
		{
			layer: "replay", mutant: mutant{
				rule: "replay", what: "a replay without the stored body",
				in: "idem.reply.answer", old: "replayable(&$resp)", new: "replayable(&$resp); $resp.Body = nil",
			},
		},
		{
			layer: "finish", mutant: mutant{
				rule: "finish", what: "a finish with undelivered jobs may expire",
				in: "internal/state.Finished", old: "len($held.Jobs) > 0 { $r.Keep", new: "len($held.Jobs) < 0 { $r.Keep",
			},
		},
		{
			layer: "derived key", mutant: mutant{
				rule: "derived key", what: "derived keys come from the attempt",
				in: "idem.progress.tx", old: "id: $p.rec.ID,", new: "id: $p.rec.Owner,",
			},
		},
		{
			layer: "release", mutant: mutant{
				rule: "release", what: "a release gives up an operation whose phases are committed and whose call may have been made",
				in: "internal/state.free", old: "return len($r.Doubts) == 0 && len($r.Phases) == 0 && len($r.Jobs) == 0 && ($r.Input == nil || $refused)",
				new: "return $r.Ver > 0 || $refused",
			},
		},
		{
			layer: "drain", outside: map[string]string{"traces": engine}, mutant: mutant{
				rule: "drain", what: "a job that could not be delivered is acknowledged",
				in: "dynamo/stream.Drain.conclude", where: "$t *todo", old: "case $err == nil: $names = append($names, $j.name)",
				new: "case $err == nil || !$t.gone: $names = append($names, $j.name)",
			},
		},
		{
			layer: "completer", outside: map[string]string{"traces": engine}, mutant: mutant{
				rule: "completer", what: "nothing that was abandoned is completed",
				in: "internal/state.Completable", old: "return $r.State == store.Open && $r.Keep == store.KeepOpen && $r.Input != nil", new: "return $r.State == store.Open && $r.Keep == store.KeepOpen && $r.Input != nil && $r.Tries < 0",
			},
		},
		{
			layer: "tenant", outside: map[string]string{"traces": oneKey, "crash matrix": "each of its requests has a key of its own"}, mutant: mutant{
				rule: "tenant", what: "the scope is no part of a record's key",
				in: "idem.naming.partitionKey", where: "$b, $text []byte, $r *Request", old: "appendPart(make([]byte, 0, 256), $text)", new: "make([]byte, 0, 256)",
			},
		},
	}
}
