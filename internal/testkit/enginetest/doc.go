// Package enginetest tests the engine on any store: scenarios, lost answers and crashes at
// every call. [TestStore] runs these tests after the conformance suite of package idemtest.
// The tests of MemoryStore are here, those of DynamoDB in package dynamo. The tests of this
// package also run both suites on faulty stores, which must fail.
package enginetest
