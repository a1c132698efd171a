// Package enginetest holds the engine to its rules, on any store: scenarios, lost
// answers and crashes at every call. [TestStore] runs them after the conformance suite of
// package idemtest. The tests of MemoryStore are here, those of DynamoDB in package dynamo.
// The tests of this package also run both suites on stores with one flaw each, which must
// fail them.
package enginetest
