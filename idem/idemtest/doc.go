// Package idemtest tests what is built on package idem: stores, and handlers
// under failure.
//
// [TestStore] is the conformance suite of [idem.Store]: it holds a store to its
// contract, then runs the engine on it through the scenarios of the
// requirements, with lost answers, crashes and races. A store's own test is
// three lines:
//
//	func TestMemoryStore(t *testing.T) {
//		idemtest.TestStore(t, func(testing.TB) idem.Store { return new(idem.MemoryStore) })
//	}
//
// [Faulty] wraps a store that fails, hangs, loses answers or takes its process
// down at chosen calls. Since every durable effect of an engine passes through
// its store, these are all the points at which it can crash. [Recorder] notes
// what concurrent clients were told, and checks that some sequence of single
// requests explains all of it. [Clock] moves time without waiting.
//
// # Where is scenario A14?
//
// Subtests carry the ids of the requirements (A…) and of the cases other
// implementations taught (P…):
//
//	go test -v -run '//A14' ./idem/idemtest
//	grep -nw A14 idem/idemtest/*.go
//
// The package imports testing, as testing/fstest does: use it from tests only.
package idemtest
