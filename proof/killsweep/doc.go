// Package killsweep has the test that kills Rocket Rides at every point: a
// process of the real function is killed, or stopped until its lease is over,
// before and after every call that it makes for a ride, to DynamoDB and to the
// payment provider. Then the client retries, or the client has gone and the
// completer continues. Each run ends in one ride, one audit record, one charge
// and one receipt, and the answer replays.
//
// If the payment provider forgets its keys within seconds, a charge that may have
// been made is never repeated: the ride waits for people, who settle it with the
// samekey command.
//
// DynamoDB is DynamoDB Local, with its stream; in the sweeps of a ride, the worker
// runs in the test's process, from the stream on, with the filters of samekey.yaml. The
// processes of worker and consumer are killed in proof/crash.
package killsweep
