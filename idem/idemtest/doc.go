// Package idemtest helps to test stores, and handlers under failure.
//
// If you write a store, you need [TestStore], the conformance suite of
// [store.Store]. The test of a store is three lines:
//
//	func TestMyStore(t *testing.T) {
//		idemtest.TestStore(t, func(testing.TB) store.Store { return mystore.New() })
//	}
//
// If you write an application, begin with [CrashEverywhere]: it crashes a handler before
// and after each of the handler's calls, and names the call at which a mistake shows. See
// docs/start/testing.md. For single tests:
//
//   - [Replays] sends a request twice, and checks that the second answer equals the first
//     and that the handler ran once.
//   - [Watch] remembers what a store commits: [Committed] returns a committed phase,
//     [Finished] the answer, and [Staged] the arguments of a job. Results and arguments
//     are decoded into Go types.
//   - [Provider] is a fake payment provider. It can lose or delay answers, refuse calls
//     and forget keys.
//   - [Faulty] makes a store fail, hang, lose answers or crash its process at the calls
//     that you choose. Every durable effect of an engine passes through its store. So a
//     crash anywhere in the engine has the same effect as a crash before or after one of
//     these calls.
//   - [Twice] runs the function of every [idem.Atomic] and [idem.Finish] twice, and so
//     finds functions with effects outside of their Tx.
//   - [Clock] moves time without waiting.
//
// The package imports testing, as testing/fstest does: use it from tests only.
package idemtest
