package main

// envelopeMutants break how a message is read that SNS or EventBridge has wrapped.
func envelopeMutants() []mutant {
	const inner, sqs = "lambda/inner.go", "lambda/sqs.go"
	return []mutant{
		{
			rule: "EnvelopeKey", what: "a job in SNS's envelope is known by the notification's id",
			file: inner, old: "in.key, err = attributeKey(value)", new: "_, err = attributeKey(value)", run: "^TestJobInAnEnvelopeIsDoneOnce$",
		},
		{
			rule: "EnvelopeKey", what: "a job in an event is known by the event's id",
			file: "lambda/message.go", old: "\treturn jobKey(m)\n", new: "\treturn id, nil\n", run: "^TestJobOnABusIsDoneOnce$",
		},
		{
			rule: "EnvelopeKey", what: "an event that reached a function through a topic is known by the notification's id",
			file: "lambda/sns.go", old: "return in.key, err", new: "return r.SNS.MessageID + in.key[:0], err", run: "^TestEventThroughSNSIsDoneOnce$",
		},
		{
			rule: "EnvelopeKey", what: "an envelope that can't be read is run under the message's id",
			file: inner, old: "said: make(url.Values)}, false, err", new: "said: make(url.Values)}, false, nil", run: "^TestUnreadableEnvelope$",
		},
		{
			rule: "EnvelopeKey", what: "a message of one's own is taken for an envelope by its type",
			file: inner, old: "case topic && string(m[\"Type\"]) == `\"Notification\"`:", new: "case topic:", run: "^TestOwnMessageIsNoEnvelope$",
		},
		{
			rule: "EnvelopeContent", what: "an envelope's times and signatures are compared",
			file: sqs, old: "[]byte(in.body)", new: "[]byte(m.Body)", run: "^TestJobInAnEnvelopeIsDoneOnce$",
		},
		{
			rule: "EnvelopeContent", what: "work of two topics under one key is taken for the same",
			file: inner, old: "\tin.said.Set(\"@topic\", topic)\n", new: "", run: "^TestOtherWorkInAnEnvelopeIsRefused$",
		},
		{
			rule: "EnvelopeContent", what: "what stands beside an envelope's members isn't compared",
			file: inner, old: "if !slices.Contains(known, name) {", new: "if false && !slices.Contains(known, name) {", run: "^TestMembersBesideAnEnvelopesAreCompared$",
		},
		{
			rule: "EnvelopeContent", what: "what comes from a topic's archive is other work",
			file: "lambda/message.go", old: "\"replayed\" ", new: "\"of replay\" ", run: "^TestWhatComesAgain$",
		},
	}
}

// bodyKeyMutants break how a key is found in a body.
func bodyKeyMutants() []mutant {
	const pointer, rpc, appsync, state = "lambda/internal/rawjson/pointer.go", "lambda/rpckey.go", "lambda/appsynckey.go", "lambda/statekey.go"
	return []mutant{
		{
			rule: "BodyKey", what: "bodies with an empty value share a key",
			file: pointer, pkg: "lambda", old: "case text == \"\":", new: "case text == \"\\x00\":", run: "^TestJSONKeyFindsNone$",
		},
		{
			rule: "BodyKey", what: "of a member that is there twice one is taken",
			file: "lambda/internal/rawjson/object.go", pkg: "lambda", old: "_, twice := m[name]; twice {", new: "_, twice := m[name]; twice && false {", run: "^TestJSONKeyFindsNone$",
		},
		{
			rule: "BodyKey", what: "the ids 1 and \"1\" of JSON-RPC are one",
			file: rpc, old: "return method, \"number \" + id, nil", new: "return method, \"text \" + id, nil", run: "^TestJSONRPCKey$",
		},
		{
			rule: "BodyKey", what: "a tool call without arguments has a key",
			file: rpc, old: "string(call.arguments) == \"{}\" || ", new: "", run: "^TestMCPToolKey$",
		},
		{
			rule: "BodyKey", what: "two users of AppSync share their keys",
			file: appsync, old: "return []string{id.Kind, id.Subject}, err", new: "return []string{id.Kind}, err", run: "^TestAppSyncKey$",
		},
		{
			rule: "BodySame", what: "a field of two objects of AppSync is one",
			file: appsync, old: "errors.Is(err, rawjson.ErrAbsent) || string(parent) == \"null\"", new: "true", run: "^TestAppSyncKeyComparesTheParent$",
		},
		{
			rule: "BodyKey", what: "two items of a Map share a key",
			file: state, old: "[]string{strconv.Itoa(len(index))}, index, extra", new: "[]string{strconv.Itoa(len(index))}, extra", run: "^TestStateKey$",
		},
		{
			rule: "BodySame", what: "other work under a key from a body is taken for the same",
			file: "lambda/bodykey.go", old: "r.Same, err = k.Same(r.Body)", new: "r.Same, err = []byte{}, nil", run: "^TestComparing$",
		},
		{
			rule: "BodySame", what: "what changes with each delivery is compared",
			file: "idem/fingerprint.go", old: "\t\tbody = r.Same\n", new: "", pkg: "lambda", run: "^TestComparing$",
		},
	}
}
