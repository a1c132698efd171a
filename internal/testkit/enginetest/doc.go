// Package enginetest holds the engine to the requirements, on any store:
// scenarios, lost answers, crashes at every call, and histories of concurrent
// clients. [TestStore] runs them after the conformance suite of package idemtest.
// The tests of MemoryStore are here, those of DynamoDB in package dynamo.
//
// [Recorder] notes what concurrent clients were told, and checks that some sequence
// of single requests explains all of it. The tests of this package also run both
// suites on stores with one flaw each, which must fail them.
//
// # Where is scenario A14?
//
// Subtests carry the ids of the requirements (A…) and of the cases other
// implementations taught (P…):
//
//	go test -v -run '//A14' ./internal/testkit/enginetest
//	grep -nw A14 internal/testkit/enginetest/*.go idem/idemtest/*.go
package enginetest
