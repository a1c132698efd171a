package main

// transportMutants break the client: one key for an operation and all its attempts,
// no attempt that could do harm, and no outcome told that isn't known.
func transportMutants() []mutant {
	return []mutant{
		{
			rule: "ClientKey", what: "each attempt has a key of its own",
			in: "idem/client.operation.header", old: "[]string{$o.key}", new: "[]string{$o.t.newKey()}", run: "^TestAgainstStripeInProgress$",
		},
		{
			rule: "ClientKey", what: "the caller's key is replaced",
			in: "idem/client.operation.header", old: `!$set && $o.key != ""`, new: `($set || !$set) && $o.key != ""`, run: "^TestKeys$",
		},
		{
			rule: "ClientKey", what: "a made key isn't random",
			in: "idem/client.NewKey", old: "_, _ = rand.Read($u[:])", new: "_ = rand.Read", run: "^TestKeyLivesForOneRequest$",
		},
		{
			rule: "ClientKey", what: "of two keys of the caller the first is sent",
			in: "idem/client.callersKey", old: "len($values) > 1", new: "false", run: "^TestCallersKeyIsChecked$",
		},
		{
			rule: "ClientKey", what: "an empty key of the caller is sent",
			in: "idem/client.callersKey", old: `$bare == ""`, new: "false", run: "^TestCallersKeyIsChecked$",
		},
		{
			rule: "ClientKey", what: "a key that no server takes is sent",
			in: "idem/client.callersKey", old: "len($bare) > maxKey", new: "false", run: "^TestCallersKeyIsChecked$",
		},
		{
			rule: "ClientKey", what: "a redirected request gets a key of its own",
			in: "idem/client.operation.chooseKey", old: `$o.key, $o.maybe = $moved, $moved != ""`, new: "_ = $moved", run: "^TestRedirects$",
		},
		{
			rule: "ClientRetries", what: "a POST without a key is sent again",
			in: "idem/client.operation.begin", old: "$o.passes = true", new: "", run: "^TestOtherMethodsPassUntouched$",
		},
		{
			rule: "ClientRetries", what: "a request that was answered well is sent again",
			in: "idem/client.operation.retriable", old: "case $resp.StatusCode < http.StatusBadRequest:", new: "case $resp.StatusCode < 100:", run: "^TestRetriedStatuses$",
		},
		{
			rule: "ClientRetries", what: "a stored error is asked for again and again",
			in: "idem/client.operation.retriable", old: "$retried && !isReplay($resp)", new: "$retried", run: "^TestOutcomes$",
		},
		{
			rule: "ClientRetries", what: "a POST is repeated to a server that ignores its key",
			in: "idem/client.operation.judge", old: "$retry && $o.ignored()", new: "false && $retry", run: "^TestOutcomes$",
		},
		{
			rule: "ClientRetries", what: "the server's word against a retry is passed over",
			in: "idem/client.operation.retriable", where: "$yes, $said := shouldRetry", old: "return reasonRefused, false; case $retried", new: "return reasonRefused, $said; case $retried", run: "^(TestWaitIsCancelled|TestOutcomes)$",
		},
		{
			rule: "ClientRetries", what: "the server's word for a retry is passed over",
			in: "idem/client.operation.retriable", where: "$yes, $said := shouldRetry", old: "return reasonAsked, true", new: "return reasonAsked, !$said", run: "^TestRetriedStatuses$",
		},
		{
			rule: "ClientRetries", what: "what was cancelled is sent again",
			in: "idem/client.operation.retriable", old: "cancelled($o.req) != nil", new: "false", run: "^TestContext$",
		},
		{
			rule: "ClientRetries", what: "a body that can't be rewound is sent again in part",
			in: "idem/client.operation.mayRetry", old: "$o.body.open == nil", new: "false", run: "^TestBodyIsSentWholeEachTime$",
		},
		{
			rule: "ClientRetries", what: "there is no end of attempts",
			in: "idem/client.operation.mayRetry", old: "$o.attempts-$o.waits > $o.t.opt.MaxRetries", new: "$o.attempts-$o.waits > 8*$o.t.opt.MaxRetries+8", run: "^TestRequestInFlightIsWaitedFor$",
		},
		{
			rule: "ClientRetries", what: "all clients retry as fast as they can: a storm",
			in: "idem/client.operation.mayRetry", old: "!$o.t.budget.retry()", new: "false", run: "^TestBudgetStopsStorms$",
		},
		{
			rule: "ClientRetries", what: "409 and 429 aren't retried",
			in: "idem/client.retried", old: "$status == http.StatusConflict || $status == http.StatusTooManyRequests ||", new: "", run: "^TestRetriedStatuses$",
		},
		{
			rule: "ClientRetries", what: "a server whose certificate is wrong gets the key again",
			in: "idem/client.permanent", old: "isTLS($err)", new: "false", run: "^TestRetriedErrors$",
		},
		{
			rule: "ClientLife", what: "an attempt goes out after the key's life: it runs again",
			in: "idem/client.operation.mayRetry", old: "$o.isOver($wait)", new: "false", run: "^TestOutcomes$",
		},
		{
			rule: "ClientLife", what: "an attempt goes out after a sleep that was longer than the key's life",
			in: "idem/client.operation.run", old: "$o.isOver(0)", new: "false", run: "^TestNoRetryAfterASleepThatOutlastedTheKey$",
		},
		{
			rule: "ClientLife", what: "the server's word on the key's end is passed over",
			in: "idem/client.operation.attempt", old: "$told && $o.key != \"\" { $o.until = $until }", new: "$told && $o.key != \"\" { _ = $until }", run: "^TestOutcomes$",
		},
		{
			rule: "ClientLife", what: "a key's end is read by the client's clock and not by the server's",
			in: "idem/client.expires", old: "$at.Sub(clock($h, $sent))", new: "$at.Sub($sent)", run: "^TestOutcomes$",
		},
		{
			rule: "ClientLife", what: "an operation of the journal whose key is over gets a second run",
			in: "idem/client.operation.remember", old: "$o.until = $e.Expires; $behind || $o.isOver(0)", new: "$o.until = $e.Expires; $behind", run: "^TestLifetimeOfAnOperation$",
		},
		{
			rule: "ClientWaits", what: "Retry-After is passed over",
			in: "idem/client.operation.mayRetry", old: "spread($asked, $o.t.opt.InitialDelay)", new: "0", run: "^TestRetryAfter$",
		},
		{
			rule: "ClientWaits", what: "Retry-After of a day holds the caller for a day",
			in: "idem/client.operation.mayRetry", old: "$asked > $o.t.opt.MaxRetryAfter", new: "false", run: "^TestRequestInFlightIsWaitedFor$",
		},
		{
			rule: "ClientWaits", what: "the attempts of many clients come at the same moments",
			in: "idem/client.backoff", old: "rand.N($sleep-$sleep/2+1)", new: "$sleep - $sleep/2 + 0*rand.N($sleep)", run: "^TestWaitsGrow$",
		},
		{
			rule: "ClientWaits", what: "the pause doesn't grow",
			in: "idem/client.backoff", old: "2 * min($sleep, $most/2)", new: "min($sleep, $most/2)", run: "^TestWaitsGrow$",
		},
		{
			rule: "ClientWaits", what: "a retry begins that its deadline cuts off",
			in: "idem/client.operation.mayRetry", old: "$limited && !$now.Add($wait).Before($deadline)", new: "false && $limited && !$now.Add($wait).Before($deadline)", run: "^TestContext$",
		},
		{
			rule: "ClientUnknown", what: "a server error leaves no doubt",
			in: "idem/client.operation.attempt", old: "$resp.StatusCode >= http.StatusInternalServerError || $o.aboutKey", new: "$o.aboutKey", run: "^(TestWaitIsCancelled|TestOutcomes)$",
		},
		{
			rule: "ClientUnknown", what: "an attempt whose answer was lost leaves no doubt",
			in: "idem/client.operation.attempt", old: "$wrote.Load() || !isUnsent($err)", new: "$wrote.Load() && $err == nil", run: "^TestOutcomes$",
		},
		{
			rule: "ClientUnknown", what: "a request that never left is in doubt",
			in: "idem/client.operation.attempt", old: "$wrote.Load() || !isUnsent($err)", new: "$wrote.Load() || $err != nil", run: "^TestOutcomes$",
		},
		{
			rule: "ClientUnknown", what: "the 409 of another attempt in progress leaves no doubt",
			in: "idem/client.operation.attempt", old: "$o.maybe = $o.maybe || $o.key != \"\" && $resp.StatusCode == http.StatusConflict", new: "", run: "^TestOutcomes$",
		},
		{
			rule: "ClientUnknown", what: "a refusal after a lost answer passes for the operation's outcome",
			in: "idem/client.operation.end", old: "$resp.Header.Set(ResultHeader, OutcomeUnknown)", new: "", run: "^TestAnswersThatSettle$",
		},
		{
			rule: "ClientUnknown", what: "a 202 that says still running passes for the end",
			in: "idem/client.operation.settles", old: `$resp.Header.Get("Retry-After") == ""`, new: "true", run: "^TestOutcomes$",
		},
		{
			rule: "ClientUnknown", what: "a server's own word of the client's header is passed on",
			in: "idem/client.operation.end", old: "$resp.Header.Del(ResultHeader)", new: "", run: "^TestOutcomes$",
		},
		{
			rule: "ClientUnknown", what: "the first 404 of a DELETE passes for one that worked",
			in: "idem/client.operation.deletedBefore", old: "$o.unknown && !$o.t.opt.KeepNotFound", new: "!$o.t.opt.KeepNotFound", run: "^TestOutcomes$",
		},
		{
			rule: "ClientUnknown", what: "an answer about the key isn't known by its code",
			in: "idem/client.isAboutKey", old: `strings.Contains($names, "idempoten")`, new: "false", run: "^TestAnswersThatSettle$",
		},
		{
			rule: "ClientUnknown", what: "an answer that was cut off counts as one",
			in: "idem/client.readAhead", old: "if $err != nil { return nil, $err }", new: "_ = $err", run: "^TestOutcomes$",
		},
		{
			rule: "ClientUnknown", what: "an answer that came after its time counts",
			in: "idem/client.operation.attempt", old: "$resp, $err = nil, timedOut($resp, $err)", new: "", run: "^TestAttemptTimeout$",
		},
		{
			rule: "ClientJournal", what: "a journal's operation goes on with another request",
			in: "idem/client.operation.remember", old: "!$here && $e.Fingerprint != $fp", new: "false && $here", run: "^TestOperationIsRefused$",
		},
		{
			rule: "ClientJournal", what: "a journal's operation goes on under another key of the caller",
			in: "idem/client.operation.remember", old: `$own != "" && $e.Key != $own`, new: "false", run: "^TestOperationIsRefused$",
		},
		{
			rule: "ClientJournal", what: "an operation that goes on after a restart is in no doubt",
			in: "idem/client.operation.remember", old: "$o.unknown = $found && !$here", new: "_ = $found", run: "^TestResumedDelete$",
		},
		{
			rule: "ClientJournal", what: "a journal that can't be written doesn't stop the first attempt",
			in: "idem/client.operation.chooseKey", old: "case $err != nil: $o.key = $used; return $err", new: "case false: $o.key = $used", run: "^TestJournalFails$",
		},
		{
			rule: "ClientJournal", what: "another body is the same operation to the journal",
			in: "idem/client.fingerprint", old: "io.Copy($h, $r)", new: "io.Copy(io.Discard, $r)", run: "^TestOperationIsRefused$",
		},
		{
			rule: "ClientJournal", what: "an operation without a journal is sent all the same",
			in: "idem/client.operation.remember", old: "$o.t.opt.Journal == nil", new: "false", run: "^TestOperationIsRefused$",
		},
		{
			rule: "Classify", what: "a declined card is called again",
			in: "idem/client.Classify", old: "case http.StatusPaymentRequired: return Declined", new: "case http.StatusPaymentRequired: return Unknown", run: "^TestClassify$",
		},
		{
			rule: "Classify", what: "a call that is still running counts as refused",
			in: "idem/client.Classify", old: "case http.StatusConflict: return Pending", new: "", run: "^TestClassify$",
		},
		{
			rule: "Classify", what: "a call without an answer counts as made",
			in: "idem/client.Classify", old: "case $err != nil, $status >=", new: "case $status >=", run: "^TestClassify$",
		},
		{
			rule: "Classify", what: "an earlier call in flight is told as an unknown one",
			in: "idem/client.Classify", old: "case slices.ContainsFunc($codes, running): return Pending", new: "", run: "^TestClassify$",
		},
	}
}
