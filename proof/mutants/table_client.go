package main

// clientMutants break what clients rest on: Stripe's own, and the journal of
// package client.
func clientMutants() []mutant {
	return []mutant{
		{
			rule: "StripeKept", what: "a kept server error is retried by Stripe's clients, which only get it again",
			in: "idem.stripeHeaders", old: "if $r.Status >= http.StatusBadRequest {", new: "if $r.Status < http.StatusBadRequest {", run: "^TestPresetStripeV1$/^a_500$",
		},
		{
			rule: "StripeMismatch", what: "Stripe's clients can't tell a reused key from a server error",
			in: "idem.stripeJSON", old: "$p.Status = http.StatusBadRequest", new: "$p.Status = http.StatusUnprocessableEntity", run: "^TestPresetStripe$/^other_body$",
		},
		{
			rule: "JournalThere", what: "keys are entered in a file that is deleted, or another's",
			in: "idem/client.FileJournal.usable", old: "!$same || $now.Size() != $j.at.size", new: "$same && $now.Size() != $j.at.size",
			run: "^TestJournalIsHarmedWhileOpen$",
		},
		{
			rule: "JournalThere", what: "keys are entered in a file that somebody has emptied",
			in: "idem/client.FileJournal.usable", old: "!$same || $now.Size() != $j.at.size", new: "!$same || $now.Size() < 0", run: "^TestJournalIsHarmedWhileOpen$",
		},
		{
			rule: "JournalThere", what: "a second process may have the journal, since the lock is gone",
			in: "idem/client.FileJournal.usable", old: `!$same { $j.broken = fmt.Errorf("%w: %s was deleted or replaced…"`,
			new: `!$same && $j == nil { $j.broken = fmt.Errorf("%w: %s was deleted or replaced…"`, run: "^TestJournalIsHarmedWhileOpen$",
		},
		{
			rule: "JournalWhole", what: "a journal that lost lines gives their operations new keys",
			in: "idem/client.decodeFile", where: "$at, $err := decodeHeader", old: "if !$reached {", new: "if !$reached && $at.size < 0 {",
			run: "^TestJournalIsHarmedWhileClosed$",
		},
		{
			rule: "JournalWhole", what: "a line whose bits have changed is taken for one that a crash cut off",
			in: "idem/client.decodeFile", old: "if $end == 0 && isCut($rest) {", new: "if $end == 0 || isCut($rest) {", run: "^TestJournalFileWithAFlippedBit$",
		},
		{
			rule: "JournalWhole", what: "an earlier copy of the journal is taken for it",
			in:  "idem/client.decodeFile",
			old: `($mark.id != $at.id || $mark.gen > $at.gen) { return nil, place{}, fmt.Errorf("%w: it is another journal, or an earlier copy of it", ErrCorrupt) }; if $mark != nil && $mark.gen < $at.gen {`,
			new: `$mark.id != $at.id { return nil, place{}, fmt.Errorf("%w: it is another journal, or an earlier copy of it", ErrCorrupt) }; if $mark != nil && $mark.gen != $at.gen {`,
			run: "^TestJournalIsHarmedWhileClosed$",
		},
		{
			rule: "JournalWhole", what: "another journal is taken for it",
			in: "idem/client.decodeFile", old: "$mark.id != $at.id || $mark.gen > $at.gen", new: "$mark.gen > $at.gen", run: "^TestJournalIsHarmedWhileClosed$",
		},
		{
			rule: "JournalAge", what: "a clock that is ahead takes the keys of operations without an answer",
			in: "idem/client.FileJournal.over", old: "!$e.Answered.IsZero() && ", new: "", run: "^TestUnansweredOperationIsNeverDropped$",
		},
		{
			rule: "JournalAge", what: "a key of any age seems new to a clock that is behind",
			in: "idem/client.operation.remember", old: "$behind || $o.isOver(0)", new: "$behind && false || $o.isOver(0)", run: "^TestNoRetryBeforeItsOperationBegan$",
		},
		{
			rule: "Ignored", what: "a PATCH is repeated to a server that ignores its key",
			in: "idem/client.operation.ignored", old: "!isIdempotent($o.req.Method)", new: `$o.req.Method == "POST"`, run: "^TestOutcomes$",
		},
		{
			rule: "Ignored", what: "a request whose key the server ignores is repeated because its answer was torn",
			in: "idem/client.operation.judge", where: "$o.retriable($resp, $err)", old: "$retry && $o.ignored()", new: "$resp != nil && $retry && $o.ignored()", run: "^TestOutcomes$",
		},
		{
			rule: "Ignored", what: "a named operation goes on with a key that the server ignores",
			in: "idem/client.operation.attempt", old: "(isUnstored($o.heard) || $o.ignored())", new: "isUnstored($o.heard)", run: "^TestLifetimeOfAnOperation$",
		},
		{
			rule: "AboutKey", what: "a refusal of the key passes for the operation's outcome",
			in: "idem/client.operation.settles", old: "if $o.aboutKey { return false }", new: "", run: "^TestAnswersThatSettle$",
		},
		{
			rule: "WebhookSecret", what: "a secret that can be guessed is taken",
			in: "idem/webhook.standardKey", old: `case len($b) < minSecret:`, new: `case len($b) < 1:`,
			run: "^TestSecretsThatCannotWork$",
		},
		{
			rule: "WebhookRecorded", what: "an event one of whose phases has failed is handled",
			in: "idem/webhook.Handler.handle", where: "$replayed bool", old: "$err != nil && answerOf($err).code == failed.code):",
			new: "$err != nil && $replayed && answerOf($err).code == failed.code):", run: "^TestNotRecorded$",
		},
		{
			rule: "JournalGone", what: "a journal that was deleted begins anew",
			in: "idem/client.FileJournal.load", old: "case errors.Is($err, fs.ErrNotExist) && $mark == nil:", new: "case errors.Is($err, fs.ErrNotExist):",
			run: "^TestJournalIsGone$",
		},
		{
			rule: "Bounded", what: "a journal that stays open forgets nothing",
			in: "idem/client.FileJournal.append", old: "|| len($j.entries) > 2*$j.kept+slack", new: "", run: "^TestJournalForgetsWhileItIsOpen$",
		},
	}
}
