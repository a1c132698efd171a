package main

// bug is a defect that proofs look for: texts of the code, and what stands there instead.
type bug struct {
	layer, what string
	edits       []edit
}

// edit replaces a text that a file has once.
type edit struct{ file, old, new string }

// bugs returns ten bugs, one a layer, and defects that strangers have found, put back.
func bugs() []bug {
	return append(layers(), found()...)
}

// layers are ten bugs, one a layer. Each loses work, does it twice or gives a wrong answer.
func layers() []bug {
	return []bug{
		{"claim", "a claim over any record", []edit{
			{
				"dynamo/conditions.go", `"attribute_not_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`,
				`"attribute_not_exists(pk) OR attribute_exists(pk) OR (exp_s < :now AND NOT keep = :freed)"`,
			},
			{"idem/memory.go", "old != nil && !free && !unchanged(old, c.Seen) {", `old != nil && old.PK == "" && !free {`},
		}},
		{"commit", "a commit over any holder and any version", []edit{
			{
				"dynamo/conditions.go", `holderCondition = "#owner = :owner AND ver = :ver"`,
				`holderCondition = "(#owner = :owner OR #owner <> :owner) AND (ver = :ver OR ver <> :ver)"`,
			},
			{
				"idem/memory.go", "case old.Owner != c.Prev.Owner || old.Ver != c.Prev.Ver:\n\t\treturn old.Clone(), nil\n\tcase len(",
				"case old.Owner != c.Prev.Owner && old.PK == c.Prev.Owner:\n\t\treturn old.Clone(), nil\n\tcase len(",
			},
		}},
		{"fingerprint", "another request under the same key is answered as the first", []edit{
			{"internal/state/judge.go", "case !same:", "case !same && found == nil:"},
		}},
		{"replay", "a replay without the stored body", []edit{
			{"idem/answer.go", "replayable(&resp)", "replayable(&resp)\n\t\tresp.Body = nil"},
		}},
		{"finish", "a finish with undelivered jobs may expire", []edit{
			{"internal/state/transition.go", "len(held.Jobs) > 0 {\n\t\tr.Keep", "len(held.Jobs) < 0 {\n\t\tr.Keep"},
		}},
		{"derived key", "derived keys come from the attempt", []edit{
			{"idem/progress.go", "&Tx{id: p.rec.ID,", "&Tx{id: p.rec.Owner,"},
		}},
		{"release", "a release frees the key of an operation whose phases are committed and whose call may have been made", []edit{
			{
				"internal/state/release.go",
				"return !MayHaveCalled(r) && len(r.Phases) == 0 && len(r.Jobs) == 0 && (r.Input == nil || refused)", "return r.Ver > 0 || refused",
			},
		}},
		{"drain", "a job that could not be delivered is acknowledged", []edit{
			{"internal/background/stream/conclude.go", "case known && err == nil:\n\t\t\tnames = append", "case err == nil || !t.gone:\n\t\t\tnames = append"},
		}},
		{"completer", "nothing that was abandoned is completed", []edit{
			{
				"internal/state/abandoned.go", "return r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil",
				"return r.State == store.Open && r.Keep == store.KeepOpen && r.Input != nil && r.Tries < 0",
			},
		}},
		{"tenant", "the scope is no part of a record's key", []edit{
			{"idem/place.go", "buf := appendPart(make([]byte, 0, 256), text)", "buf := make([]byte, 0, 256)"},
		}},
	}
}

// found are defects that were found from outside, put back. What they were in is gone for
// two of them: a claim that was merged with the first commit, and a cache of answers.
func found() []bug {
	return []bug{
		{"mark", "a plain 402 after a death in a call, which another run passes by, becomes final", []edit{
			{"idem/end.go", "r.calls.missed(r.record().Doubts)}", "r.calls.missed(nil)}"},
		}},
		{"mark", "a record that is kept already isn't marked before its next call", []edit{
			{"idem/foreign.go", "p.run.record().Mark != mark || p.unsent(sent)", "p.run.record().Keep != store.KeepOpen || p.unsent(sent)"},
		}},
		{"mark", "an answer that is lost makes a renewal pass for the write before a call", []edit{
			{
				"internal/state/land.go", "len(a.Phases) == len(b.Phases) &&\n\t\tKept(a) == Kept(b) && a.Mark == b.Mark",
				"len(a.Phases) == len(b.Phases)",
			},
		}},
		{"memory", "a call that is never repeated is, by a host whose clock is behind", []edit{
			{"internal/state/lookup.go", "if d.Begun(r) || NeverRepeated(r, d.Phase) {", "if d.Begun(r) {"},
			{"internal/state/lookup.go", "(d.Keyless || d.Never() || now.Sub", "(d.Keyless || now.Sub"},
		}},
		{"memory", "a call is repeated after its provider has forgotten the key", []edit{
			{"internal/state/lookup.go", "d.Never() || now.Sub(r.DoubtSince) >= d.Memory)", "d.Never())"},
		}},
		{"look-up", "a look-up that finds no call counts while the call is on its way", []edit{
			{"internal/state/lookup.go", "late := a.Began.After(a.Sent.Add(a.Within))", "late := a.Began.After(a.Sent.Add(a.Within / 1000))"},
		}},
		{"look-up", "a look-up counts from the first copy of the call, and not from the last", []edit{
			{"internal/state/lookup.go", "until = r.DoubtUntil", "until = r.DoubtSince"},
		}},
		{"quota", "requests that waited for a holder begin new operations without asking the quota", []edit{
			{"idem/wait.go", "held, v, err = c.begin(ctx)", "held, v, err = c.claim(ctx)"},
		}},
		{"nesting", "another request under its operation's own key runs unprotected inside of it", []edit{
			{"idem/ask.go", "case !same:", "case !same && op.run == nil:"},
		}},
		{"refusal", "the retry of a charged request is refused by a limit that came later: nothing was done", []edit{
			{
				"idem/attempt.go", "\ta.prepare(ctx)\n",
				"\ta.prepare(ctx)\n\tif b := a.ask.barred; b != nil && b.Op == \"request\" {\n\t\treturn Result{}, b\n\t}\n",
			},
		}},
		{"refusal", "behind a table that refuses every call, a handler of ModeOpen runs unprotected", []edit{
			{"idem/attempt.go", " && !errors.Is(err, store.ErrRefused)", ""},
		}},
		{"refusal", "jobs that don't fit in their record are noticed after the charge", []edit{
			{"idem/job.go", "return sizer.Fits(rec, state.Advanced(rec, r.ask.core.opt.Now(), nil, all, nil))", "all = nil\n\treturn sizer.Fits(rec, state.Advanced(rec, r.ask.core.opt.Now(), nil, all, nil))"},
		}},
		{"caller", "two issuers' users of one name are one caller", []edit{
			{"lambda/scope.go", "id.Subject = join(iss, sub)", "id.Subject = join(iss[:0], sub)"},
		}},
		{"challenge", "a 402 that asks for a payment's proof is the answer to the proof, too", []edit{
			{"idem/policy.go", "if len(r.Header[name]) > 0 {", "if len(r.Header[name]) > 9 {"},
		}},
		{"source", "an asynchronous event meets its dead process's lease at each retry, and is lost", []edit{
			{"idem/wait.go", "case c.ask.req.Asynchronous:", "case c.ask.req.Asynchronous && held == nil:"},
		}},
		{"breaker", "operations that fail hold up a good one of the same function for ever", []edit{
			{"internal/background/completer/breaker.go", "if !o.Unanswered {", "if o.Kind == TicketDone {"},
		}},
		{"double", "in the DynamoDB of the simulation, what isn't there equals any value", []edit{
			{"internal/testkit/fakedynamo/eval.go", "return c.op == \"<>\"\n", "return true\n"},
		}},
		{"race", "a renewal and a phase write one field of an attempt at once", []edit{
			{"idem/progress.go", "func (p *progress) set(rec *store.Record) {\n\tp.mu.Lock()\n\tdefer p.mu.Unlock()\n", "func (p *progress) set(rec *store.Record) {\n"},
		}},
	}
}
