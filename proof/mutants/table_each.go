package main

// eachMutants break what a batch of records rests on: which records are the same
// work, whose keys they are, which come again, and in what order.
func eachMutants() []mutant {
	return []mutant{
		{
			rule: "Origin", what: "a batch takes the records of another service",
			in: "lambda.checkOrigins", old: "$o.service != $service", new: "$o.service == \"\" && $service == \"\"", run: "^TestWrongKindOfBatch$",
		},
		{
			rule: "Origin", what: "an event without records counts as done",
			in: "lambda.checkOrigins", old: "$n == 0", new: "false", run: "^TestWrongKindOfBatch$",
		},
		{
			rule: "Origin", what: "a record without an id is taken",
			in: "lambda.checkOrigins", old: `$o.id == ""`, new: "false", run: "^TestWrongKindOfBatch$",
		},
		{
			rule: "Origin", what: "a record that doesn't name its source is taken: its scope is empty",
			in: "lambda.checkOrigins", old: `$o.arn == ""`, new: "false", run: "^TestWrongKindOfBatch$",
		},
		{
			rule: "EachKey", what: "all messages of a queue have one key",
			in: "lambda.sqsContent", old: "content($keyed, $m.MessageId, $m.Body)", new: "content($keyed, \"m\", $m.Body)", run: "^TestConcurrency$",
		},
		{
			rule: "EachKey", what: "a producer's key is passed over",
			in: "lambda.sqsContent", old: "$in.key, $err = $key, $keyErr", new: "_, $err = $key, $keyErr", run: "^TestForgedEnvelopeIsOtherWork$",
		},
		{
			rule: "EachKey", what: "an empty key of a producer is taken for none",
			in: "lambda.attributeKey", old: `$value == ""`, new: "false", run: "^TestUnreadableEnvelope$",
		},
		{
			rule: "EachKey", what: "a key in a binary attribute is read as text",
			in: "lambda.snsContent", old: `strings.HasPrefix($dataType, "Binary")`, new: `strings.HasPrefix($dataType, "?")`, run: "^TestUnreadableEnvelope$",
		},
		{
			rule: "EachKey", what: "two changes of one S3 object have one key",
			in: "lambda.s3Key", old: "digestKey($r.S3.Bucket.Name, $o.Key, $o.VersionID, $r.EventName, $moment)", new: "digestKey($r.S3.Bucket.Name, $o.Key, $o.VersionID, $r.EventName, $moment[:0])", run: "^TestWhatComesAgain$",
		},
		{
			rule: "EachKey", what: "an S3 notification that nothing tells from the next one has a key",
			in: "lambda.s3Key", old: `$request == "" && $r.EventTime.IsZero()`, new: "false", run: "^TestUnusableKeyOfAMessage$",
		},
		{
			rule: "EachSame", what: "a message's group is no part of its work",
			in: "lambda.sqsRequest", old: `$group != ""`, new: "false", run: "^TestKeyInTwoGroupsIsRefused$",
		},
		{
			rule: "EachSame", what: "a message's attributes are no part of its work",
			in: "lambda.sqsContent", old: `$in.said.Set($name, $a.DataType+":"+$value)`, new: "_ = $value", run: "^TestGoldenBatches$",
		},
		{
			rule: "EachSame", what: "a notification's subject is no part of its work",
			in: "lambda.snsContent", old: `$subject != ""`, new: "false", run: "^TestOtherWorkInAnEnvelopeIsRefused$",
		},
		{
			rule: "EachSame", what: "a Kinesis record's partition key is no part of its work",
			in: "lambda.kinesisRequest", old: "$r.Kinesis.PartitionKey", new: `""`, run: "^TestGoldenBatches$",
		},
		{
			rule: "EachSame", what: "a stream record's old image is no part of its work",
			in: "lambda.dynamoDBStreamRequest", old: "plainItem($r.Change.OldImage)", new: "nil", run: "^TestGoldenBatches$",
		},
		{
			rule: "EachSame", what: "a set in another order is another item",
			in: "lambda.plainValue", old: `slices.Sorted(slices.Values($v.StringSet()))`, new: "$v.StringSet()", run: "^TestGoldenBatches$",
		},
		{
			rule: "EachSame", what: "an event's resources are no part of its work",
			in: "lambda.eventBridgeRequest", old: `"@resource": $ev.Resources`, new: "", run: "^TestGoldenBatches$",
		},
		{
			rule: "EachScope", what: "two buses share their events' ids",
			in: "lambda.eventBridgeRequest", old: `"events:"+$ev.AccountID+":"+$ev.Region+":"+$ev.Source`, new: `"events:"`, run: "^TestGoldenBatches$",
		},
		{
			rule: "EachScope", what: "two functions that get a topic's messages do one's work",
			in: "lambda.consumerScope", old: "return join($source, functionScope($ctx))", new: "_ = $ctx; return $source", run: "^TestWithScope$",
		},
		{
			rule: "EachScope", what: "each version of a function has keys of its own: a deployment does the work again",
			in: "lambda.functionARN", old: "$parts = $parts[:$qualifier]", new: "", run: "^TestWhatComesAgain$",
		},
		{
			rule: "EachScope", what: "two queues share their messages' ids",
			in: "lambda.sqsRequest", old: "Source: $queue", new: `Source: "sqs"`, run: "^TestOwnMessageIsNoEnvelope$",
		},
		{
			rule: "EachOrder", what: "messages of a FIFO queue have no order",
			in: "lambda.sqsGroup", old: `!strings.HasSuffix($m.EventSourceARN, ".fifo")`, new: `!strings.HasSuffix($m.EventSourceARN, ".none")`, run: "^TestLogOfABatch$",
		},
		{
			rule: "EachOrder", what: "messages of a standard queue wait for each other",
			in: "lambda.sqsGroup", old: `!strings.HasSuffix($m.EventSourceARN, ".fifo")`, new: `strings.HasSuffix($m.EventSourceARN, ".none")`, run: "^TestFIFOGroupStopsAtItsFirstFailure$",
		},
		{
			rule: "EachOrder", what: "records of a shard have no order",
			in: "lambda.Kinesis", old: "return shard", new: `return ""`, run: "^TestStreamStopsAtItsFirstFailure$",
		},
		{
			rule: "EachOrder", what: "a group goes on after a failure",
			in: "lambda.course.run", old: `!$ended || $task.came != nil && $task.group != ""`, new: "!$ended", run: "^TestLogOfABatch$",
		},
		{
			rule: "EachOrder", what: "two deliveries of one key run side by side",
			in: "lambda.lanesOf", old: `$known && ($t.group != "" || $t.req.Key != "")`, new: `$known && $t.group != ""`, run: "^TestSameKeyWaitsForAnOverdueHandler$",
		},
		{
			rule: "EachOrder", what: "records without a key wait for each other",
			in: "lambda.lanesOf", old: `$known && ($t.group != "" || $t.req.Key != "")`, new: "$known", run: "^TestEachWithoutKeyAtOnce$",
		},
		{
			rule: "Kafka", what: "a batch of Kafka takes the records of another service",
			in: "lambda.kafkaRecords", old: `$ev.EventSource != "aws:kafka" && $ev.EventSource != "SelfManagedKafka"`, new: `false`, run: "^TestUnreadableKafkaEvent$",
		},
		{
			rule: "Kafka", what: "a Kafka event that names no cluster is taken: all share a scope",
			in: "lambda.kafkaRecords", old: `case $cluster == "":`, new: `case false:`, run: "^TestUnreadableKafkaEvent$",
		},
		{
			rule: "Kafka", what: "a Kafka record is reported at a place that isn't its own",
			in: "lambda.kafkaRecords", old: `$r.Topic == "" || kafkaPartition(&$r) != $partition`, new: `$r.Topic == ""`, run: "^TestUnreadableKafkaEvent$",
		},
		{
			rule: "Kafka", what: "a Kafka value that can't be read is an empty one",
			in: "lambda.kafkaRecords", old: `if $err != nil { return nil, notA(kafkaKind, fmt.Sprintf("the value of record %d of %.300q is not base64", $i, $partition)) }`, new: `_ = $err`, run: "^TestUnreadableKafkaEvent$",
		},
		{
			rule: "Kafka", what: "a Kafka event without records counts as done",
			in: "lambda.kafkaRecords", old: `len($all) == 0`, new: `false`, run: "^TestUnreadableKafkaEvent$",
		},
		{
			rule: "Kafka", what: "a cluster's servers in another order are another cluster",
			in: "lambda.sortedServers", old: `slices.Sort($list)`, new: ``, run: "^TestWhatComesAgain$",
		},
		{
			rule: "Kafka", what: "two topics share their keys",
			in: "lambda.kafkaRequest", old: `$r.Cluster+"/"+$r.Topic`, new: `$r.Cluster`, run: "^TestGoldenBatches$",
		},
		{
			rule: "KeyAttribute", what: "of two keys of a message one counts",
			in: "lambda.attributeKey", old: `$n > 1`, new: `false`, run: "^TestKeyAttributeInAnyCase$",
		},
		{
			rule: "Kafka", what: "a producer's key of a Kafka record is passed over",
			in: "lambda.kafkaKey", old: `$keyed {`, new: `$keyed && false {`, run: "^TestWhatComesAgain$",
		},
		{
			rule: "KeyAttribute", what: "a producer's key whose attribute has another case is passed over",
			in: "lambda.attributeKey", old: `strings.EqualFold($name, KeyAttribute)`, new: `$name == KeyAttribute`, run: "^TestKeyAttributeInAnyCase$",
		},
		{
			rule: "Kafka", what: "nobody is told that a topic outlasts the retention",
			in: "lambda.Kafka", old: `Keeps: keepsKafka,`, new: ``, run: "^TestASourceThatOutlasts",
		},
		{
			rule: "Kafka", what: "a topic that is made anew has its former records' keys",
			in: "lambda.kafkaKey", old: `+"@"+strconv.FormatInt($r.Timestamp.UnixMilli(), 10)`, new: ``, run: "^TestWhatComesAgain$",
		},
		{
			rule: "Kafka", what: "a Kafka record's key is no part of its work",
			in: "lambda.kafkaRequest", old: `"@key": {$r.Key}`, new: ``, run: "^TestSameKafkaRecord$",
		},
		{
			rule: "Kafka", what: "a Kafka record's headers are no part of its work",
			in: "lambda.kafkaRequest", old: `identifies($name)`, new: `false`, run: "^TestSameKafkaRecord$",
		},
		{
			rule: "Kafka", what: "a header of Kafka that isn't text is another on its way",
			in: "lambda.kafkaRequest", old: `!utf8.ValidString($value)`, new: `!utf8.ValidString($value) && false`, run: "^TestGoldenBatches$",
		},
		{
			rule: "Kafka", what: "a partition goes on after a failure",
			in: "lambda.Kafka", old: `Group: func($r KafkaRecord) string { return kafkaPartition(&$r.KafkaRecord) },`, new: ``, run: "^TestPartitionStopsAtItsFirstFailure$",
		},
		{
			rule: "Kafka", what: "a partition goes back to its last failure",
			in: "lambda.kafkaReply", old: `$partition == "" || $partition != $last`, new: `$partition != $last || true`, run: "^TestPartitionStopsAtItsFirstFailure$",
		},
		{
			rule: "EachReport", what: "a message that failed isn't named to SQS",
			in: "lambda.sqsReply", old: "$re.BatchItemFailures[$i].ItemIdentifier = $id", new: "_, _ = $i, $id", run: "^TestKeyInTwoGroupsIsRefused$",
		},
		{
			rule: "EachReport", what: "a Kinesis batch that failed counts as done",
			in: "lambda.kinesisReply", old: "min(len($failed), 1)", new: "min(len($failed), 0)", run: "^TestStreamStopsAtItsFirstFailure$",
		},
		{
			rule: "EachReport", what: "a stream's batch that failed counts as done",
			in: "lambda.dynamoDBStreamReply", old: "min(len($failed), 1)", new: "min(len($failed), 0)", run: "^TestStreamStopsAtItsFirstFailure$",
		},
		{
			rule: "EachReport", what: "a failed record of a source without a report counts as done",
			in: "lambda.EachHandler.each", old: "len($failed) > 0 && ($h.batch.Reply == nil || len($failed) == len($recs))", new: "len($failed) > 0 && $h.batch.Reply != nil && len($failed) == len($recs)", run: "^TestSourcesWithoutReportFailAfterAllRecords$",
		},
		{
			rule: "EachReport", what: "a batch that failed whole looks well to Lambda",
			in: "lambda.EachHandler.each", old: "$h.batch.Reply == nil || len($failed) == len($recs)", new: "$h.batch.Reply == nil", run: "^TestNothingDoneFailsTheInvocation$",
		},
		{
			rule: "EachReport", what: "a record that panics takes the others' report with it",
			in: "lambda.EachHandler.try", old: "$err = panicked($v)", new: "panic($v)", run: "^TestPanicIsTheRecordsFailure$",
		},
		{
			rule: "EachSame", what: "a trace makes the same message other work",
			in: "lambda.identifies", old: "!slices.Contains(transportAttributes, $name)", new: "!slices.Contains([]string(nil), $name)", run: "^TestJobInAnEnvelopeIsDoneOnce$",
		},
		{
			rule: "EachReport", what: "a hook that panics takes the report with it",
			in: "lambda.EachHandler.tell", old: "if $v := recover(); $v != nil {", new: "if $v := any(nil); $v != nil {", run: "^TestHookThatPanicsKeepsTheReport$",
		},
		{
			rule: "EachReport", what: "a handler that ends its goroutine has done its record",
			in: "lambda.course.begin", old: "$t.came = errGone", new: "", run: "^TestGoexitLeavesNothingDone$",
		},
		{
			rule: "EachReport", what: "a record that was done long ago fails for ever",
			in: "lambda.EachHandler.try", old: "case !$t.ran() && (errors.Is($err, idem.ErrNotKept) || errors.Is($err, idem.ErrExpired)):", new: "case false:", run: "^TestDoneWithoutAnswerIsDone$",
		},
		{
			rule: "TellNothing", what: "a record whose handler ran says that it didn't",
			in: "lambda.EachHandler.try", old: "errors.Is($err, idem.ErrNoTime) && !$t.ran()", new: "errors.Is($err, idem.ErrNoTime)", run: "^TestNilAfterAFailedPhase$",
		},
		{
			rule: "EachReport", what: "a record counts as done whose phase failed with an error of another operation",
			in: "lambda.EachHandler.try", old: "case !$t.ran() && (errors.Is($err, idem.ErrNotKept)", new: "case (errors.Is($err, idem.ErrNotKept)", run: "^TestNilAfterAFailedPhase$",
		},
		{
			rule: "EachTenant", what: "two tenants share the keys of a queue",
			in: "lambda.EachHandler.read", old: "$t.req.Tenant = tenantOf($ctx)", new: "_ = $t", run: "^TestTenantsHaveKeysOfTheirOwn$",
		},
		{
			rule: "DirectScope", what: "an event without a scope shares its keys with all others",
			in: "lambda.directRequest", old: `$req.Scope == ""`, new: "false", run: "^TestDirectRefusals$",
		},
		{
			rule: "DirectScope", what: "a scope that failed is an empty one",
			in: "lambda.directRequest", old: "case $err != nil: return $req, &idem.Error{Op: \"scope\"", new: "case false: return $req, &idem.Error{Op: \"scope\"", run: "^TestDirectRefusals$",
		},
		{
			rule: "DirectSame", what: "what a type doesn't decode is no part of the payload",
			in: "lambda.Handler.invokeTyped", old: "withPayload($ctx, $payload)", new: "$ctx", run: "^TestBodyKeyOnEveryDoor$",
		},
		{
			rule: "DirectSame", what: "a stored result that can't be read is an empty one",
			in: "lambda.decodeResult", old: `return $out, fmt.Errorf("lambda: %w: the stored result is no…", idem.ErrCorrupt, $out, $err)`, new: `_ = fmt.Errorf("%w", $err); return $out, nil`, run: "^TestDirectResults$",
		},
		{
			rule: "DirectSame", what: "a result without a JSON form is done again",
			in: "lambda.Handler.neutral", old: "return idem.Response{Body: []byte(noForm + $err.Error())}", new: "return idem.Response{Status: 500}", run: "^TestDirectResults$",
		},
		{
			rule: "DirectSame", what: "a result without a JSON form is answered by its text",
			in: "lambda.Handler.do", old: "if strings.HasPrefix(string($res.Body), noForm) {", new: "if false && strings.HasPrefix(string($res.Body), noForm) {", run: "^TestDirectResults$",
		},
		{
			rule: "DirectSame", what: "a caller gets a result that isn't the stored one",
			in: "lambda.Handler.do", old: "$own = *new($Re)", new: "", run: "^TestDirectLeaseLost$",
		},
		{
			rule: "DirectType", what: "Lambda isn't told which error of the engine it is",
			in: "lambda.reported", old: "return messages.InvokeResponse_Error{Message: $err.Error(), Type: $t.name}", new: "_ = messages.InvokeResponse_Error{}; _ = $t.name", run: "^TestDirectLeaseLost$",
		},
		{
			rule: "RouterOne", what: "two routes have one name, so a completer finds the first",
			in: "lambda.Router.Keyed", old: `$r.named($name) != nil || $opt.Name == ""`, new: `$opt.Name == ""`, run: "^TestMistakesPanic$",
		},
		{
			rule: "RouterOne", what: "a check before the key runs after it",
			in: "lambda.Router.Handle", old: "$t.before != nil", new: "false", run: "^TestRouterBefore$",
		},
		{
			rule: "RouterOne", what: "an operation of another engine ends the search for its own",
			in: "lambda.Router.resume", old: "case errors.Is($err, jobs.ErrNotMine): $result = $err", new: "case errors.Is($err, jobs.ErrNotMine): return $err", run: "^TestRouterCompletesInTheRightRoute$",
		},
		{
			rule: "RouterOne", what: "a path of another route runs the route's handler again",
			in: "lambda.pattern.values", old: `case strings.Contains($p.path, "{"):`, new: "case false:", run: "^TestRouterAfterAChange$",
		},
		{
			rule: "EndpointKind", what: "a webhook's endpoint serves an event of another kind",
			in: "lambda.EndpointHandler.Handle", old: "case errors.Is($err, ErrEvent):", new: "case errors.Is($err, ErrEvent) && false:", run: "^TestWebhookHandle$",
		},
		{
			rule: "EndpointKind", what: "a webhook's body that can't be decoded is an empty one",
			in: "lambda.EndpointHandler.Handle", old: "case $err != nil: return $h.adapter.Reply($h.endpoint.Refuse($ctx, $req, $err)), nil", new: "", run: "^TestA28WebhookThroughEachSource$",
		},
	}
}
