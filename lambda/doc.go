// Package lambda wraps AWS Lambda handlers of HTTP events so that they are safe
// to retry: a request is carried out once for each idempotency key, and every
// retry gets the same answer.
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
// # What holds
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
//     default 5xx and the 4xx that ask for a corrected request) frees the key:
//     the next retry runs it again.
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
// effect does it under a condition of its own. Responses that stream can't be
// stored, so there is no adapter for them. A Lambda response is at most 6 MB,
// 1 MB behind a load balancer, base64 included, and larger ones fail as they do
// without this package; what the engine keeps of them is up to
// [idem.Options.MaxBody].
//
// # Who is calling
//
// Keys of different callers never meet: the scope of a key is the identity that
// the event source has verified, as each adapter describes. Nothing else in an
// event is believed, headers least of all. Without an authorizer all callers
// share one scope, about which the engine logs a warning; set
// [idem.Options.Scope], or [idem.Request.Scope] in an adapter of your own, where
// you know better.
//
// # One request, four forms
//
// A request that is repeated through another kind of event is still the same
// one, if the same identity is verified there. Header names are looked up in any case; bodies count by their decoded
// bytes; paths are compared without stage and in one percent-encoding, queries
// without regard to the order of names. Two things can't be mended: an HTTP API
// hides whether a slash or a percent sign in the path was escaped, and a load balancer without
// multi-value headers hides all but the last value of a header or parameter.
// Routes ([idem.Request.Route]) are patterns for APIs, and plain paths for
// function URLs and load balancers.
package lambda
