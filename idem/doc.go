// Package idem runs an operation once for each idempotency key, and answers every
// repetition with the same answer.
//
//	engine := idem.New(store)
//	res, err := engine.Do(ctx, idem.Request{Key: key, Scope: user, Body: body}, work)
//
// Most programs don't call [Engine.Do] themselves: package lambda wraps Lambda
// handlers, and [Engine.Middleware] wraps an http.Handler. A [store.Store] keeps the
// records: package dynamo has the store for DynamoDB, and [MemoryStore] is for tests.
//
// # What it guarantees
//
// A key belongs to a caller, the key's scope. For each key, during its lifetime
// ([Options.Retention]), the engine guarantees:
//
//   - once an answer is stored, the handler doesn't run again: every later request gets
//     that answer, byte for byte, marked as a replay;
//   - of several simultaneous requests only the first runs; the others learn that the
//     request is in flight, and when to retry;
//   - a different request with the same key is refused, and doesn't get the stored answer;
//   - an attempt that lost its lease changes nothing in the store, however late it wakes
//     up;
//   - an attempt recognises its own write even if the write's acknowledgement was lost.
//
// # What it doesn't guarantee
//
// If a process dies after the handler's effect and before the answer is stored, the
// process leaves an open record. Once the lease of that record is over, a retry runs
// the handler again. The effects of a handler without phases may then happen twice.
//
// Phases prevent a second effect. [Atomic] and [Finish] commit the handler's writes
// together with a recovery point or the answer. [Foreign] repeats a call to another
// system only with the same derived key. A call to a system without idempotency keys
// stays unsafe ([NotIdempotent]): after a failure, a person may have to find out
// whether the call had an effect.
//
// # The lease
//
// An attempt holds the key until the deadline of the attempt's context, plus
// [Options.LeaseMargin]. On Lambda the deadline is the end of the invocation. So no
// attempt takes a key from a running function, and a retry can take over soon after a
// function was killed. Outside of Lambda nothing kills a handler at its deadline. If
// the handler works past its deadline, the engine renews the lease for up to 15
// minutes.
//
// Clocks decide only when a retry may take over, and when a key's lifetime ends. Before
// that end, a second effect in the store is impossible even if a clock is wrong, since
// each write checks the record's owner and version. A process whose clock is too far
// ahead may run a key again before its lifetime is over.
package idem
