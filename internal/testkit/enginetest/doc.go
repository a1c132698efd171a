// Package enginetest tests the engine on any store: scenarios, lost answers and crashes at every
// call. [TestStore] runs these tests after the conformance suite of package idemtest. Package
// enginetest calls TestStore for MemoryStore, and package dynamo calls it for the DynamoDB store.
// Other tests of package enginetest check that the engine's tests and the conformance suite fail on
// faulty stores.
package enginetest
