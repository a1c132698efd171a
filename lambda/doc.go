// Package lambda makes AWS Lambda handlers safe to retry: a handler runs once for each
// idempotency key, and every retry of a request gets the same answer.
//
//   - For HTTP, use [Wrap] with [HTTPAPI], [REST], [FunctionURL] or [ALB]. A function
//     with several routes uses a [Router].
//   - For queues, topics, streams, buckets and buses, use [WrapEach] with [SQS], [SNS],
//     [Kinesis], [Kafka], [DynamoDBStream], [S3] or [EventBridge].
//   - For invocations by name, synchronous or asynchronous, use [Wrap] with [Direct].
//   - For keys in bodies, use [JSONKey], [JSONRPCKey], [MCPToolKey], [AppSyncKey] or [StateKey]
//     with any of these adapters and batches.
//
// [Wrap] takes an engine, the adapter for the function's event source, and an ordinary
// handler. The program below is a complete function for an HTTP API whose authorizer
// identifies the caller. If the API has no authorizer, keyed requests get 500, unless
// you set [idem.Options.Scope], or let all callers share their keys by idem.New(store,
// idem.OneScope).
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"os"
//
//		"github.com/aws/aws-lambda-go/events"
//
//		"github.com/samekey/samekey/dynamo"
//		"github.com/samekey/samekey/idem"
//		"github.com/samekey/samekey/lambda"
//	)
//
//	func hello(_ context.Context, req events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
//		return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: "hello, " + req.Body}, nil
//	}
//
//	func main() {
//		client, err := dynamo.NewClient()
//		if err != nil {
//			log.Fatal(err)
//		}
//		store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
//		if err != nil {
//			log.Fatal(err)
//		}
//		lambda.Start(lambda.Wrap(idem.New(store), lambda.HTTPAPI, hello))
//	}
//
// In tests, an [idem.MemoryStore] replaces the table, and [Handler.Handle] replaces the
// runtime.
//
// # Requests
//
// The engine acts on requests with one of the engine's methods, by default POST and
// PATCH:
//
//   - The handler runs for the first request. Later requests with the same key get the
//     first answer's status, body bytes and allow-listed headers, with the additional
//     header Idempotent-Replayed: true.
//   - A request with the same key that arrives while the handler runs gets 409 with
//     Retry-After, unless [idem.Options.InFlight] says otherwise. A request with the same
//     key but another method, path, query or body gets 422. A missing or malformed key
//     gets 400. The handler doesn't run for any of these requests.
//   - The key is freed if the handler fails, panics, or returns an answer that isn't
//     kept (by default 5xx, and the 4xx that [idem.DefaultStored] rejects). The next
//     retry runs the handler again. But if a phase is committed or a call is in doubt,
//     the key isn't freed, and the client's retry continues the operation. If
//     [idem.Options.Resumable] is set, an error, a panic or a 5xx doesn't free the key:
//     the client's retry or a completer continues the operation. After a panic the
//     client gets the same 500 as after an error; then the process ends, as it does
//     without a wrapper.
//   - If too little time is left before the function's deadline, the answer is 503 and the
//     handler isn't run. The handler's context ends shortly before the deadline, so that the
//     answer can still be stored.
//
// Requests with other methods reach the handler as if it were not wrapped. The same
// holds for requests without a key if [idem.Options.Key] is [idem.KeyOptional].
//
// # Limits
//
// If a process crashes after a handler's effect and before the answer is stored, the next retry
// runs the handler again. If an effect must not repeat, put it into a phase ([idem.Atomic]).
//
// Streamed responses can't be stored, so there is no adapter for them. Lambda limits a
// response to 6 MB, and to 1 MB behind a load balancer, base64 included. Larger
// responses fail as they do without this package. [idem.Options.MaxBody] limits
// what the engine stores.
//
// # Messages and records
//
// Sources other than HTTP deliver each record at least once, and deliver a failed record again.
// [WrapEach] makes each record of an event an operation, so that only records that aren't done
// are run again:
//
//   - A record is done once, however often it is delivered: alone or in a batch,
//     twice in one batch, in two invocations at once, or after a timeout.
//   - Failures are reported record by record if the source accepts a report of single
//     records (batchItemFailures). A FIFO queue's message group, a stream's shard and a
//     topic's partition each stop at the first failure. The whole invocation fails if
//     no record was done. If the source accepts no report, the invocation fails even if
//     only one record fails.
//   - A record counts as failed, and is delivered again, if another invocation works on
//     it, if too little time is left to begin it, or if the store doesn't answer.
//   - A panic fails only the record that was being handled.
//   - Ten records run at once, unless [Batch.Concurrency] says otherwise. Each handler gets only a
//     share of the remaining time, so that records that wait get a share too. Invoke doesn't wait
//     for a handler that ignores the end of its context: that handler delays neither the other
//     records nor the report.
//
// The comment of each batch describes its keys, scopes and failures. One engine can
// serve HTTP and records, with two differences. [idem.Options.Methods] applies to HTTP
// only. Records don't need [idem.Options.Resumable], because their source delivers
// failed records again. A completer doesn't run records.
//
// # Scopes
//
// Callers don't share keys. The scope of a key is the identity that the event source
// has verified (each adapter says which), and the tenant if Lambda isolates tenants. No
// other part of an event is trusted, least of all a header. A keyed request without a
// verified identity is refused ([idem.ErrScope]). The engine then logs what can help,
// such as an authorizer, [idem.Options.Scope], or [idem.OneScope] for public routes.
// Your own adapter can set [idem.Request.Scope].
//
// [RoleScope], [SessionScope], [APIKeyScope] and [CertificateScope] are scopes for identities
// that AWS verifies, but that several callers may share. [ClaimScope] is for users who act for
// several organisations under one login.
//
// # One request through two kinds of events
//
// A retry may come through another kind of event than the first request, if both
// sources verify the same identity. Header names may be in upper or lower case. The
// engine compares the decoded bytes of bodies. It compares paths without the stage and
// with uniform percent-encoding, and queries regardless of the order of their names.
// Two differences between requests don't reach the engine: an HTTP API hides whether a
// slash or a percent sign in the path was escaped, and a load balancer without
// multi-value headers hides all but the last value of a header or parameter. Behind an
// API and in a [Router] the route ([idem.Request.Route]) is a pattern. For function
// URLs, load balancers and the route $default, the route is the method followed by /*,
// such as "POST /*".
//
// # Events made from records
//
// A completer can run a request again without its client. The handler then gets an event
// of the same kind, made from the record ([Adapter.Event]). The event has:
//
//   - the method, path, query, path parameters, stage, stage variables, body, domain
//     name and source address of the request;
//   - the headers of [idem.Options.InputHeaders];
//   - everything that was verified about the caller, in its usual place: the claims of
//     a token, the context of a Lambda authorizer, the IAM or Cognito identity, the id of
//     the API key, the name in a client certificate.
//
// The event has no other headers, no ids and times of the first invocation, and no
// secrets: no tokens, cookies, API keys, access keys or certificates. But the context
// of a Lambda authorizer is stored, except values that look like tokens. So an
// authorizer must put no other secrets into its context.
package lambda
