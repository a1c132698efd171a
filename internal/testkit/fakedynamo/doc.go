// Package fakedynamo is an in-memory DynamoDB for tests. It parses and evaluates expressions, as the
// service does. Its calls take no time and never block, so it works in a bubble of
// testing/synctest, and a simulation can run a million requests on it.
//
// A differential test (agree_test.go) runs the same script on this package and on DynamoDB Local.
// The package has only the features that packages dynamo and internal/background/stream
// use. It has no sets, sort keys, PartiQL or idempotency tokens. If an expression contains
// an operator, function or clause that the package doesn't have, the call returns an error.
// A [Server] also refuses unknown operations and request members. A DB neither throttles
// nor loses calls. To test these faults, wrap the DB.
package fakedynamo
