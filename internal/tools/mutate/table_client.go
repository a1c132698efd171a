package main

// clientMutants break what clients rest on: Stripe's own, and the journal of
// package client.
func clientMutants() []mutant {
	const file, line, disk = "idem/client/journal_file.go", "idem/client/journal_line.go", "idem/client/journal_disk.go"
	return []mutant{
		{
			rule: "StripeKept", what: "a kept server error is retried by Stripe's clients, which only get it again",
			file: "idem/presets.go", old: "if r.Status >= http.StatusBadRequest {", new: "if r.Status < http.StatusBadRequest {", run: "^TestPresetStripeV1$/^a_500$",
		},
		{
			rule: "StripeMismatch", what: "Stripe's clients can't tell a reused key from a server error",
			file: "idem/problem.go", old: "p.Status = http.StatusBadRequest // as Stripe", new: "p.Status = http.StatusUnprocessableEntity // as Stripe",
			run: "^TestPresetStripe$/^other_body$",
		},
		{
			rule: "JournalThere", what: "keys are entered in a file that is deleted, or another's",
			file: file, old: "!same || now.Size() != j.at.size", new: "same && now.Size() != j.at.size", run: "^TestJournalIsHarmedWhileOpen$",
		},
		{
			rule: "JournalThere", what: "keys are entered in a file that somebody has emptied",
			file: file, old: "!same || now.Size() != j.at.size", new: "!same || now.Size() < 0", run: "^TestJournalIsHarmedWhileOpen$",
		},
		{
			rule: "JournalThere", what: "a second process may have the journal, since the lock is gone",
			file: file, old: "; !same {\n\t\tj.broken = fmt.Errorf(\"%w: %s was deleted or replaced", new: "; !same && j == nil {\n\t\tj.broken = fmt.Errorf(\"%w: %s was deleted or replaced",
			run: "^TestJournalIsHarmedWhileOpen$",
		},
		{
			rule: "JournalWhole", what: "a journal that lost lines gives their operations new keys",
			file: line, old: "if !reached {", new: "if !reached && at.size < 0 {", run: "^TestJournalIsHarmedWhileClosed$",
		},
		{
			rule: "JournalWhole", what: "a line whose bits have changed is taken for one that a crash cut off",
			file: line, old: "if end == 0 && isCut(rest) {", new: "if end == 0 || isCut(rest) {", run: "^TestJournalFileWithAFlippedBit$",
		},
		{
			rule: "JournalWhole", what: "an earlier copy of the journal is taken for it",
			file: line, old: "(mark.id != at.id || mark.gen > at.gen) {\n\t\treturn nil, place{}, fmt.Errorf(\"%w: it is another journal, or an earlier copy of it\", ErrCorrupt)\n\t}\n\tif mark != nil && mark.gen < at.gen {",
			new: "mark.id != at.id {\n\t\treturn nil, place{}, fmt.Errorf(\"%w: it is another journal, or an earlier copy of it\", ErrCorrupt)\n\t}\n\tif mark != nil && mark.gen != at.gen {",
			run: "^TestJournalIsHarmedWhileClosed$",
		},
		{
			rule: "JournalWhole", what: "another journal is taken for it",
			file: line, old: "mark.id != at.id || mark.gen > at.gen", new: "mark.gen > at.gen", run: "^TestJournalIsHarmedWhileClosed$",
		},
		{
			rule: "AboutKey", what: "a refusal of the key passes for the operation's outcome",
			file: "idem/client/outcome.go", old: "\tif o.aboutKey {\n\t\treturn false\n\t}\n", new: "", run: "^TestRefreshedTokenAfterALostAnswer$",
		},
		{
			rule: "WebhookSecret", what: "a secret that can be guessed is taken",
			file: "idem/webhook/standard.go", old: "case kind == \"whsec\" && len(b) < minSecret:", new: "case kind == \"whsec\" && len(b) < 1:",
			run: "^TestSecretsThatCannotWork$",
		},
		{
			rule: "WebhookRecorded", what: "an event one of whose phases has failed is handled",
			file: "idem/webhook/handler.go", old: "case err != nil && succeeded && answerOf(err).code == failed.code:", new: "case err != nil && replayed && answerOf(err).code == failed.code:",
			run: "^TestNotRecorded$",
		},
		{
			rule: "JournalGone", what: "a journal that was deleted begins anew",
			file: disk, old: "case errors.Is(err, fs.ErrNotExist) && mark == nil:", new: "case errors.Is(err, fs.ErrNotExist):", run: "^TestJournalIsHarmedWhileClosed$",
		},
	}
}
