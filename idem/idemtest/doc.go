// Package idemtest helps to test stores, and to test handlers that must survive
// failures.
//
// If you write a store, you need [TestStore], the conformance suite of
// [store.Store]. The test of a store is three lines:
//
//	func TestMyStore(t *testing.T) {
//		idemtest.TestStore(t, func(testing.TB) store.Store { return mystore.New() })
//	}
//
// If you write an application, begin with [CrashEverywhere]. It crashes the process
// before and after each call that a handler or its engine makes. If a crash leads to a
// wrong result, the failure names the call. See docs/start/testing.md. For single
// tests:
//
//   - [Replays] sends a request twice, and checks that the second answer equals the first
//     and that the handler ran once.
//   - [Watch] remembers what a store commits. [Committed] returns a committed phase,
//     with its result decoded into a Go type. [Finished] returns the answer. [Staged]
//     returns the arguments of a job, decoded into a Go type.
//   - [Provider] is a fake payment provider. It can lose or delay answers, refuse calls
//     and forget keys.
//   - [Faulty] makes a store fail, hang, lose answers or crash its process at the calls
//     that you choose. A crash anywhere in the engine has the same effect as a crash
//     before or after a call to the store, because the engine has durable effects only
//     through the store.
//   - [Twice] runs the function of every [idem.Atomic] and [idem.Finish] twice, and so
//     finds functions with effects outside of their Tx.
//   - [Clock] moves time without waiting.
//
// Use the package from tests only, because it imports testing.
package idemtest
