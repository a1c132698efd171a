// Package enginetest tests the engine on any store. In some tests an answer of the
// store is lost, or the process crashes at a store call. [TestStore] runs all these
// tests after the conformance suite of package idemtest. Package enginetest calls
// TestStore for MemoryStore, and package dynamo calls it for the DynamoDB store. Other
// tests of package enginetest check that the engine's tests and the conformance suite
// fail on faulty stores.
package enginetest
