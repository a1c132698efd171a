// Package enginetest tests the engine on any store: scenarios, lost answers and crashes at every
// call. [TestStore] runs these tests after the conformance suite of package idemtest. This package
// tests MemoryStore, package dynamo the DynamoDB store. This package also tests that both suites
// fail on faulty stores.
package enginetest
