package main

// webhookMutants break the checks of a delivery: who signed which bytes, when, and
// whether the event is on record before the provider is told so.
func webhookMutants() []mutant {
	return []mutant{
		{
			rule: "WebhookSigned", what: "any bytes pass for signed ones",
			in: "idem/webhook.verifier.check", old: "!$v.signed($message, $signatures)", new: "false", run: "^TestStandardSecretWithoutPrefix$",
		},
		{
			rule: "WebhookSigned", what: "a signature of one scheme counts for another's key",
			in: "idem/webhook.verifier.signed", old: "$s.scheme == $k.scheme && $matches($s.sum)", new: "$matches($s.sum)", run: "^TestStandardSignature$",
		},
		{
			rule: "WebhookSigned", what: "Stripe's signature doesn't cover its time: a delivery can be sent again with a new one",
			in: "idem/webhook.Stripe.Verify", old: `slices.Concat([]byte($t+"."), $body)`, new: "slices.Concat(nil, $body)", run: "^TestA28Webhook$",
		},
		{
			rule: "WebhookSigned", what: "a standard signature doesn't cover the event's id",
			in: "idem/webhook.Standard.Verify", old: `slices.Concat([]byte($id+"."+$t+"."), $body)`, new: `slices.Concat([]byte($t+"."), $body)`, run: "^TestStandardSecretWithoutPrefix$",
		},
		{
			rule: "WebhookSigned", what: "a standard id with a full stop moves the border between id, time and body",
			in: "idem/webhook.Standard.Verify", old: `$err == nil && strings.Contains($id, ".")`, new: `$err == nil && strings.Contains($id, "..")`, run: "^TestStandardSignature$",
		},
		{
			rule: "WebhookSigned", what: "a second signature's header is passed over",
			in: "idem/webhook.header", old: `if $found { return "", fmt.Errorf("%w: more than one %s", ErrMalformed, $name) }`, new: "_ = $found", run: "^TestStripeHeaderNames$",
		},
		{
			rule: "WebhookSigned", what: "a header with any number of signatures is checked",
			in: "idem/webhook.parseStripe", old: "$name == v1 && len($signatures) == maxSignatures", new: "false && $name == v1", run: "^TestStripeSignature$",
		},
		{
			rule: "WebhookSigned", what: "a standard header with any number of signatures is checked",
			in: "idem/webhook.parseStandard", old: "len($signatures) == maxSignatures", new: "false", run: "^TestStandardSignature$",
		},
		{
			rule: "WebhookSigned", what: "of two times in a signature the last counts",
			in: "idem/webhook.parseStripe", old: `case $name == "t" && $t != "":`, new: `case false && $name == "t":`, run: "^TestStripeSignature$",
		},
		{
			rule: "WebhookSigned", what: "an old secret's end isn't taken: deliveries are refused while it is changed",
			in: "idem/webhook.newVerifier", old: "append([]string{$secret}, $opt.MoreSecrets...)", new: "[]string{$secret}", run: "^TestStandardSecretWithoutPrefix$",
		},
		{
			rule: "WebhookTime", what: "a delivery of any age is taken",
			in: "idem/webhook.verifier.check", old: "$age > $v.tolerance", new: "false && $age > $v.tolerance", run: "^TestTolerance$",
		},
		{
			rule: "WebhookTime", what: "a delivery from the future is taken",
			in: "idem/webhook.verifier.check", old: "$age < -$v.tolerance", new: "false && $age < 0", run: "^TestTolerance$",
		},
		{
			rule: "WebhookTime", what: "a time in another spelling is taken",
			in: "idem/webhook.parseTime", old: "strconv.FormatUint($n, 10) != $s", new: "false", run: "^TestStripeSignature$",
		},
		{
			rule: "WebhookTime", what: "a time with any number of digits is taken",
			in: "idem/webhook.parseTime", old: "len($s) > $digits", new: "len($s) > 20*$digits", run: "^TestStripeSignature$",
		},
		{
			rule: "WebhookTime", what: "without a tolerance every delivery is refused",
			in: "idem/webhook.newVerifier", old: "$opt.Tolerance <= 0 || $opt.Now == nil", new: "$opt.Now == nil", run: "^TestSecretsThatCannotWork$",
		},
		{
			rule: "WebhookSecret", what: "a secret that was cut off is taken",
			in: "idem/webhook.NewStripe", old: "len($s) < 8", new: "false", run: "^TestSecretsThatCannotWork$",
		},
		{
			rule: "WebhookSecret", what: "a secret with a line break never fits, and nobody says why",
			in: "idem/webhook.NewStripe", old: `strings.ContainsAny($s, " \t\r\n")`, new: `strings.ContainsAny($s, "")`, run: "^TestSecretsThatCannotWork$",
		},
		{
			rule: "WebhookID", what: "an event without an id is handled, and so are all others like it",
			in: "idem/webhook.Handler.verify", old: "$err = checkID($ev.ID)", new: "", run: "^TestOwnVerifier$",
		},
		{
			rule: "WebhookID", what: "an event's id may be of any length and hold any bytes",
			in: "idem/webhook.checkID", old: `$id == "" || len($id) > 255 || strings.ContainsFunc(`, new: `$id == "" && strings.ContainsFunc(`, run: "^TestStripeEventID$",
		},
		{
			rule: "WebhookPost", what: "a webhook is taken by GET",
			in: "idem/webhook.Handler.verify", old: "$r.Method != http.MethodPost", new: "false", run: "^TestRefusedDeliveries$",
		},
		{
			rule: "WebhookPost", what: "a delivery of any size is hashed",
			in: "idem/webhook.Handler.verify", old: "int64(len($r.Body)) > $h.maxBody", new: "false", run: "^TestRefusedDeliveries$",
		},
		{
			rule: "WebhookPost", what: "a body that somebody has read is an empty one",
			in: "idem/webhook.Handler.readBody", old: "int64(len($body)) < $r.ContentLength", new: "false", run: "^TestHTTPWithoutItsBody$",
		},
		{
			rule: "WebhookOnce", what: "a retry to the endpoint's new path is refused, and the event is lost",
			in: "idem/webhook.New", old: "func(*idem.Request) ([]byte, error) { return nil, nil }", new: "func(r *idem.Request) ([]byte, error) { return []byte(r.Path), nil }", run: "^TestSameEvent$",
		},
		{
			rule: "WebhookOnce", what: "a 202 ends the retries of an event that can still fail",
			in: "idem/webhook.New", old: "$opt.InFlight = idem.InFlightRefuse", new: "", run: "^TestInFlightModes$",
		},
		{
			rule: "WebhookOnce", what: "events are handled without a record by an option of the caller",
			in: "idem/webhook.New", old: "$opt.Key, $opt.KeyFrom = idem.KeyRequired, nil", new: "", run: "^TestObserveRunsEventsTwice$",
		},
		{
			rule: "WebhookOnce", what: "two endpoints share an event's id",
			in: "idem/webhook.Handler.handle", old: `Source: "webhook:" + $h.endpoint`, new: `Source: "webhook:"`, run: "^TestSameEvent$",
		},
		{
			rule: "WebhookOnce", what: "two tenants share an event's id",
			in: "idem/webhook.Handler.handle", old: "Tenant: $r.Tenant", new: `Tenant: ""`, run: "^TestSameEvent$",
		},
		{
			rule: "WebhookOnce", what: "an event that has ended its retention is an error for ever",
			in: "idem/webhook.Handler.handle", old: "case done($err):", new: "case false:", run: "^TestRetention$",
		},
		{
			rule: "WebhookRecorded", what: "an event that is not on record counts as handled",
			in: "idem/webhook.Handler.handle", old: "!$res.Replayed && !$res.Passed && $res.Expires.IsZero()", new: "false", run: "^TestNotRecorded$",
		},
		{
			rule: "WebhookAnswer", what: "a handler's error that wraps one of the engine is told as the engine's",
			in: "idem/webhook.answerOf", old: "; $own {", new: "; false && $own {", where: "_, $own := errors.AsType", run: "^TestHandlerFails$",
		},
		{
			rule: "WebhookAnswer", what: "an event that waits for people is told to come again at once",
			in: "idem/webhook.refusals", old: `refusal{http.StatusConflict, "stuck", "The event waits for an operator.", 0}`, new: `refusal{http.StatusConflict, "stuck", "The event waits for an operator.", time.Second}`, run: "^TestStuckEventWaitsForAnOperator$",
		},
		{
			rule: "WebhookAnswer", what: "a provider isn't told how long the other delivery has the event",
			in: "idem/webhook.answer", old: "$r.retry = max($r.retry, $e.RetryAfter)", new: "_ = $e", run: "^TestInFlightModes$",
		},
		{
			rule: "WebhookAnswer", what: "a handler that panics has handled its event",
			in: "idem/webhook.Handler.Serve", old: "idem.Result{Response: answer(errPanic), Panic: $v}", new: "idem.Result{Response: handled(false), Panic: $v}", run: "^TestHandlerPanics$",
		},
		{
			rule: "WebhookAnswer", what: "a handler's panic doesn't end its process",
			in: "idem/webhook.Handler.Serve", old: "Response: answer(errPanic), Panic: $v", new: "Response: answer(errPanic)", run: "^TestHandlerPanics$",
		},
		{
			rule: "WebhookAnswer", what: "a handler that cuts the connection is told as a failure",
			in: "idem/webhook.Handler.Serve", old: "case http.ErrAbortHandler: panic($v)", new: "", run: "^TestHandlerPanics$",
		},
	}
}
