// Package enginetest tests the engine on any store: scenarios, lost answers and crashes at every
// call. [TestStore] runs these tests after the conformance suite of package idemtest. MemoryStore
// is tested here, the DynamoDB store in package dynamo. The tests here also check that both suites
// fail on faulty stores.
package enginetest
