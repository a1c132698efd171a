// Package idem runs an operation once for each idempotency key, and answers
// every repetition the same: same key, same answer.
//
//	engine := idem.New(store)
//	res, err := engine.Do(ctx, idem.Request{Key: key, Scope: user, Body: body}, work)
//
// Most programs don't call [Engine.Do] themselves: package lambda wraps Lambda
// handlers, [Engine.Middleware] wraps an http.Handler. Records are kept by a
// [Store]: package dynamo has the one for DynamoDB, [MemoryStore] is for tests.
//
// # What it guarantees
//
// Within the lifetime of a key ([Options.Retention]), in one scope:
//
//   - the handler runs once to an answer that is stored, and every later request
//     gets that answer, byte for byte, marked as a replay;
//   - of requests at the same time one runs, the others are told that it is in
//     flight and when to ask again;
//   - a key that comes with another request, or where nobody has verified the
//     caller with other credentials, is refused and told nothing;
//   - a worker that lost its lease, however late it wakes up, changes nothing;
//   - a lost acknowledgement of the store is recognised, not taken for somebody
//     else's claim.
//
// # What it does not
//
// A process that dies after its handler had an effect and before the answer is
// stored leaves an open record. Once its lease is over, a retry runs the handler
// again. What a handler without phases did may then happen twice. Phases
// ([Atomic], [Foreign], [Finish]) commit it together with a recovery point, or
// repeat a call to others with the same derived key; they don't make a call safe
// that has no keys ([NotIdempotent]): its outcome may need a human.
//
// Numbers such as R34 in comments are those of docs/requirements.md.
//
// # The lease
//
// An attempt holds its key until its context's deadline plus
// [Options.LeaseMargin]. On Lambda that is the end of the invocation, so a key
// is never taken from a function that still runs, and is free soon after one
// that was killed. Where nobody kills it, the lease of a handler that works on
// after its deadline is renewed, up to [Options.RenewFor]. Clocks only decide when a retry may take over; that nothing
// happens twice in the store rests on the record's owner and version.
package idem
