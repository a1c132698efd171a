// Package killsweep has the test that kills Rocket Rides wherever it can die: a
// process of the real function is killed, or stopped until its lease is over,
// before and after every call it makes for a ride, to DynamoDB and to the
// payment provider. Its client retries, or has gone, and the completer is left.
// Whatever was hit, there is one ride, one audit record, one charge and one
// receipt in the end, and the answer replays.
//
// The processes of the drain and of the completer are harmed in the same way, with
// real queues (ElasticMQ).
//
// With a payment provider that forgets its keys within seconds, what may have been
// charged by the time is never charged again: it waits for people, who end it with
// the samekey command.
//
// DynamoDB is DynamoDB Local, with its stream; in the sweeps of a ride, drain and
// completer run in the test's process, from the stream on, with the filters of
// template.yaml.
package killsweep
