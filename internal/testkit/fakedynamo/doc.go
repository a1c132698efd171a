// Package fakedynamo is DynamoDB in memory for tests. It parses and evaluates any
// expression, as the service does. Its calls take no time and never block, so it
// works in a bubble of testing/synctest, and a simulation can run a million requests
// on it.
//
// A differential test (agree_test.go) runs the same script on it and on DynamoDB Local. It has the
// features that packages dynamo and internal/background/stream use: no sets, sort keys, PartiQL or
// idempotency tokens. An unknown feature is an error. It neither throttles nor loses calls: to test
// these faults, wrap the DB.
package fakedynamo
