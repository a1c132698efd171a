// Package fakedynamo is DynamoDB in memory for tests: it parses and evaluates the
// expressions that it gets, as the service does, instead of knowing what the package
// dynamo asks for. Its calls take no time and never block, so it can be used in a
// bubble of testing/synctest, and one simulation can run a million requests on it.
//
// A differential test plays the same script on it and on DynamoDB Local
// (agree_test.go). It has what packages dynamo and internal/background/stream use: no sets, no
// sort key, no PartiQL, no idempotency tokens. What it doesn't know is an error, never
// ignored. It neither throttles nor loses anything: whoever tests that stands between.
package fakedynamo
