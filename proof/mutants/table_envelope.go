package main

// envelopeMutants break how a message is read that SNS or EventBridge has wrapped.
func envelopeMutants() []mutant {
	return []mutant{
		{
			rule: "EnvelopeKey", what: "a job in SNS's envelope is known by the notification's id",
			in: "lambda.snsContent", old: "$in.key, $err = $key, $keyErr", new: "_, $err = $key, $keyErr", run: "^TestJobInAnEnvelopeIsDoneOnce$",
		},
		{
			rule: "EnvelopeKey", what: "a job in an event is known by the event's id",
			in: "lambda.detailKey", where: "$id string", old: "return jobKey($m)", new: "return $id, nil", run: "^TestWhatComesAgain$",
		},
		{
			rule: "EnvelopeKey", what: "an event that reached a function through a topic is known by the notification's id",
			in: "lambda.snsKey", where: "$r events.SNSEventRecord", old: "return $in.key, $err", new: "return $r.SNS.MessageID + $in.key[:0], $err",
			run: "^TestEventThroughSNSIsDoneOnce$",
		},
		{
			rule: "EnvelopeKey", what: "an envelope that can't be read is run under the message's id",
			in: "lambda.content", old: "said: make(url.Values)}, false, $err", new: "said: make(url.Values)}, false, nil", run: "^TestUnreadableEnvelope$",
		},
		{
			rule: "EnvelopeKey", what: "a message of one's own is taken for an envelope by its type",
			in: "lambda.openObject", old: "case $topic && string($m[\"Type\"]) == `\"Notification\"`:", new: "case $topic:", run: "^TestOwnMessageIsNoEnvelope$",
		},
		{
			rule: "EnvelopeContent", what: "an envelope's times and signatures are compared",
			in: "lambda.sqsRequest", where: "$m events.SQSMessage", old: "[]byte($in.body)", new: "[]byte($m.Body)", run: "^TestJobInAnEnvelopeIsDoneOnce$",
		},
		{
			rule: "EnvelopeContent", what: "work of two topics under one key is taken for the same",
			in: "lambda.openNotification", old: `$in.said.Set("@topic", $topic)`, new: "", run: "^TestOtherWorkInAnEnvelopeIsRefused$",
		},
		{
			rule: "EnvelopeContent", what: "what stands beside an envelope's members isn't compared",
			in: "lambda.others", old: "if !slices.Contains($known, $name) {", new: "if false && !slices.Contains($known, $name) {",
			run: "^TestMembersBesideAnEnvelopesAreCompared$",
		},
		{
			rule: "EnvelopeContent", what: "what comes from a topic's archive is other work",
			in: "lambda.transportAttributes", old: `"replayed"`, new: `"of replay"`, run: "^TestWhatComesAgain$",
		},
	}
}

// bodyKeyMutants break how a key is found in a body.
func bodyKeyMutants() []mutant {
	return []mutant{
		{
			rule: "BodyKey", what: "bodies with an empty value share a key",
			in: "lambda/internal/rawjson.Scalar", old: `case $text == "":`, new: `case $text == "\x00":`, pkg: "lambda", run: "^TestJSONKeyFindsNone$",
		},
		{
			rule: "BodyKey", what: "of a member that is there twice one is taken",
			in: "lambda/internal/rawjson.Object", old: "_, $twice := $m[$name]; $twice {", new: "_, $twice := $m[$name]; $twice && false {", pkg: "lambda",
			run: "^TestJSONKeyFindsNone$",
		},
		{
			rule: "BodyKey", what: "the ids 1 and \"1\" of JSON-RPC are one",
			in: "lambda.rpcRequest", old: `return $method, "number " + $id, nil`, new: `return $method, "text " + $id, nil`, run: "^TestJSONRPCKey$",
		},
		{
			rule: "BodyKey", what: "a tool call without arguments has a key",
			in: "lambda.MCPToolKey", old: `string($call.arguments) == "{}" ||`, new: "", run: "^TestMCPToolKey$",
		},
		{
			rule: "BodyKey", what: "two users of AppSync share their keys",
			in: "lambda.appSyncCaller", old: "return []string{$id.Kind, $id.Subject}, $err", new: "return []string{$id.Kind}, $err", run: "^TestAppSyncKey$",
		},
		{
			rule: "BodySame", what: "a field of two objects of AppSync is one",
			in: "lambda.appSyncParent", old: `errors.Is($err, rawjson.ErrAbsent) || string($parent) == "null"`, new: "true", run: "^TestAppSyncKeyComparesTheParent$",
		},
		{
			rule: "BodyKey", what: "two items of a Map share a key",
			in: "lambda.StateKey", old: "[]string{strconv.Itoa(len($index))}, $index, $extra", new: "[]string{strconv.Itoa(len($index))}, $extra", run: "^TestStateKey$",
		},
		{
			rule: "BodySame", what: "other work under a key from a body is taken for the same",
			in: "lambda.BodyKey.compare", old: "$r.Same, $err = $k.Same($r.Body)", new: "$r.Same, $err = []byte{}, nil", run: "^TestComparing$",
		},
		{
			rule: "BodySame", what: "what changes with each delivery is compared",
			in: "idem.Fingerprint.digest", old: "$body = $r.Same", new: "", pkg: "lambda", run: "^TestComparing$",
		},
	}
}
