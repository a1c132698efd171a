// Package lambda wraps AWS Lambda handlers so that they are safe to retry: a
// request, a message or a record is carried out once for each idempotency key,
// and every retry of a request gets the same answer.
//
//   - HTTP: [Wrap] with [HTTPAPI], [REST], [FunctionURL] or [ALB]; a function with
//     several routes has a [Router].
//   - Queues, topics, streams, buckets, buses: [WrapEach] with [SQS], [SNS],
//     [Kinesis], [DynamoDBStream], [S3] or [EventBridge].
//   - Invocations by name, synchronous or not: [Wrap] with [Direct].
//   - Keys in bodies, for all of them: [JSONKey], [JSONRPCKey], [MCPToolKey],
//     [AppSyncKey], [StateKey].
//
// [Wrap] takes an engine, the adapter for the function's event source, and an
// ordinary handler. A complete function behind an HTTP API:
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
// In tests an [idem.MemoryStore] takes the table's place, and [Handler.Handle]
// the runtime's.
//
// # What holds for requests
//
// For requests of the engine's methods (POST by default) that carry a key:
//
//   - The handler runs for the first of them. Later ones, also through another
//     kind of event, get its status, body bytes and allow-listed headers, with
//     Idempotent-Replayed: true.
//   - One that comes while the handler runs gets 409 with Retry-After; one that
//     differs in method, path, query or body gets 422; a missing or malformed
//     key gets 400. In none of these cases the handler runs.
//   - A handler that fails, panics, or answers with what isn't worth keeping (by
//     default 5xx and the 4xx that ask for a corrected request) frees the key,
//     unless the completer is to end it ([idem.Options.Resumable]): the next retry
//     runs it again. After a panic the client gets the same 500 as after an error,
//     and then the process ends, as it does without a wrapper.
//   - With too little time left to the function's deadline the answer is 503 and
//     nothing is begun. The handler's context ends shortly before the deadline,
//     so that the answer can still be stored.
//
// Everything else passes to the handler as if it were not wrapped.
//
// # What does not
//
// Between a handler's effects and the storing of its answer a crash can come:
// then the next retry runs the handler again. A handler that must not repeat an
// effect does it in a phase ([idem.Atomic]). Responses that stream can't be
// stored, so there is no adapter for them. A Lambda response is at most 6 MB,
// 1 MB behind a load balancer, base64 included, and larger ones fail as they do
// without this package; what the engine keeps of them is up to
// [idem.Options.MaxBody].
//
// # Messages and records
//
// Sources other than HTTP deliver at least once, and again what has failed.
// [WrapEach] makes each record of an event an operation of its own, so that only
// what has not been done is done again:
//
//   - A record that was done is done, however often it comes: alone or in a
//     batch, twice in one batch, in two invocations at once, or after a timeout
//     that undid none of the others.
//   - Failures are reported one by one where the source takes that
//     (batchItemFailures), in the order it needs: a message group of a FIFO queue
//     and the shard of a stream stop at their first failure. Elsewhere, and where
//     nothing was done, the invocation fails.
//   - What is in flight in another invocation, what can't be begun for lack of
//     time, and what the store can't say anything about is never taken for done:
//     it counts as failed, and is delivered again.
//   - A panic is the failure of its record. The others go on.
//   - Ten records are worked on at once, unless [Batch] says otherwise, and those
//     that wait get their share of the time. A handler that ignores the end of its
//     context is left behind, and holds up neither the others nor the report.
//
// Each batch says what its keys, scopes and failures are. An engine serves HTTP
// and records alike, with two differences: [idem.Options.Key] and Methods are
// about requests only, and records need no [idem.Options.Resumable], since their
// source delivers them again; a completer could make no record of what is stored.
//
// # Who is calling
//
// Keys of different callers never meet: the scope of a key is the identity that
// the event source has verified, as each adapter describes, and the tenant where
// Lambda isolates tenants. Nothing else in an event is believed, headers least of
// all. Without an authorizer all callers share one scope, and whoever presents
// other credentials than the first one is refused ([idem.ErrCredentials]), about
// which the engine logs a warning; set [idem.Options.Scope], or
// [idem.Request.Scope] in an adapter of your own, where you know better.
//
// # One request, four forms
//
// A request that is repeated through another kind of event is still the same
// one, if the same identity is verified there. Header names are looked up in any
// case; bodies count by their decoded bytes; paths are compared without stage and
// in one percent-encoding, queries without regard to the order of names. Two
// things can't be mended: an HTTP API hides whether a slash or a percent sign in
// the path was escaped, and a load balancer without multi-value headers hides all
// but the last value of a header or parameter. Routes ([idem.Request.Route]) are
// patterns for APIs, and plain paths for function URLs and load balancers.
//
// # Events made again
//
// A request that is run again from its record, without its client, reaches the
// handler as an event of the same kind ([Adapter.Event]). It has the method, path,
// query, path parameters, stage and stage variables, body, domain name and source
// address it had; the headers of [idem.Options.InputHeaders]; and all that was
// verified about the caller, where the handler reads it: the claims of a token,
// the context of a Lambda authorizer, the IAM or Cognito identity, the API key's
// id, the name in a client's certificate. It doesn't have other headers, ids and
// times of the first invocation, nor anything secret: tokens, cookies, API keys,
// access keys, certificates. What a Lambda authorizer puts into its context is
// stored as it is, so it must put no secrets there.
package lambda
