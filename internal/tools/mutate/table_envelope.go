package main

// envelopeMutants break how a message is read that SNS or EventBridge has wrapped.
func envelopeMutants() []mutant {
	const inner, sqs = "lambda/inner.go", "lambda/sqs.go"
	return []mutant{
		{
			rule: "EnvelopeKey", what: "a job in SNS's envelope is known by the notification's id",
			file: inner, old: "in.key, err = snsAttributeKey(attributes, id)", new: "in.key = id", run: "^TestJobInAnEnvelopeIsDoneOnce$",
		},
		{
			rule: "EnvelopeKey", what: "a job in an event is known by the event's id",
			file: inner, old: "\treturn jobKey(m)\n", new: "\treturn id, nil\n", run: "^TestJobOnABusIsDoneOnce$",
		},
		{
			rule: "EnvelopeKey", what: "an event that reached a function through a topic is known by the notification's id",
			file: "lambda/sns.go", old: "openBody(r.SNS.Message); ok || err != nil {", new: "openBody(r.SNS.Message); ok && err != nil {", run: "^TestEventThroughSNSIsDoneOnce$",
		},
		{
			rule: "EnvelopeKey", what: "an envelope that can't be read is run under the message's id",
			file: sqs, old: "return m.MessageId, err", new: "return m.MessageId, nil", run: "^TestUnreadableEnvelope$",
		},
		{
			rule: "EnvelopeKey", what: "a message of one's own is taken for an envelope by its type",
			file: inner, old: "case topic && string(m[\"Type\"]) == `\"Notification\"`:", new: "case topic:", run: "^TestOwnMessageIsNoEnvelope$",
		},
		{
			rule: "EnvelopeContent", what: "an envelope's times and signatures are compared",
			file: sqs, old: "ok && err == nil", new: "ok && err != nil", run: "^TestJobInAnEnvelopeIsDoneOnce$",
		},
		{
			rule: "EnvelopeContent", what: "work of two topics under one key is taken for the same",
			file: inner, old: "\tin.said.Set(\"@topic\", topic)\n", new: "", run: "^TestOtherWorkInAnEnvelopeIsRefused$",
		},
	}
}
