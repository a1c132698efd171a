// Package idem runs an operation once for each idempotency key, and answers
// every repetition with the same answer.
//
//	engine := idem.New(store)
//	res, err := engine.Do(ctx, idem.Request{Key: key, Scope: user, Body: body}, work)
//
// Most programs don't call [Engine.Do] themselves: package lambda wraps Lambda
// handlers, [Engine.Middleware] wraps an http.Handler. A [store.Store] keeps the
// records: package dynamo has the store for DynamoDB, [MemoryStore] is for tests.
//
// # What it guarantees
//
// Within the lifetime of a key ([Options.Retention]), in one scope:
//
//   - the handler runs once to an answer that is stored, and every later request
//     gets that answer, byte for byte, marked as a replay;
//   - of simultaneous requests only the first runs, and the others learn that the
//     request is in flight and when to retry;
//   - a key that comes with another request is refused and doesn't show the first
//     answer;
//   - a worker that lost its lease, however late it wakes up, changes nothing;
//   - a write whose acknowledgement was lost is recognised as the attempt's own.
//
// # What it doesn't guarantee
//
// A process that dies after its handler had an effect and before the answer is
// stored leaves an open record. Once its lease is over, a retry runs the handler
// again. The effects of a handler without phases may then happen twice. Phases
// ([Atomic], [Foreign], [Finish]) commit effects together with a recovery point,
// or repeat a call to others with the same derived key. A call to a system
// without keys stays unsafe ([NotIdempotent]): its outcome may need a person.
//
// # The lease
//
// An attempt holds its key until its context's deadline plus
// [Options.LeaseMargin]. On Lambda that is the end of the invocation, so a key
// is never taken from a running function, and is free soon after a function was
// killed. Outside of Lambda nothing kills a handler at its deadline: its
// lease is renewed, up to 15 minutes.
//
// Clocks only decide when a retry may take over. The record's owner and version
// prevent a second effect in the store.
package idem
