// Package idemtest helps to test stores, and handlers under failure.
//
// If you write a store, you need [TestStore], the conformance suite of
// [store.Store]. The test of a store is three lines:
//
//	func TestMyStore(t *testing.T) {
//		idemtest.TestStore(t, func(testing.TB) store.Store { return mystore.New() })
//	}
//
// If you write an application, you need the faults and the clock. [Faulty] wraps a
// store that fails, hangs, loses answers or crashes its process at the calls that
// you choose. Every durable effect of an engine passes through its store, so these
// calls are all the points at which the engine can crash. [Twice] runs the function
// of every phase twice and so finds functions with effects of their own. [Clock]
// moves time without waiting.
//
// The package imports testing, as testing/fstest does: use it from tests only.
package idemtest
