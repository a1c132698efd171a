// Package dynamo keeps the records of package idem in one DynamoDB table.
//
//	client, err := dynamo.NewClient()
//	…
//	store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
//	…
//	engine := idem.New(store)
//
// One item holds one key: a partition key and nothing else, no index. A new
// request takes one conditional PutItem and one conditional UpdateItem, 2 write
// units while the record has at most 1 KB. A replay, a request in flight and a
// mismatch take one refused PutItem, which returns the record in the same call.
// docs/item.md describes the layout.
//
// The functions that deliver staged jobs and complete abandoned operations are in
// package dynamo/stream.
//
// # What it guarantees
//
// Every condition names owner and version of the record, so a write by a worker
// that lost its lease is refused by the table. Expiry is decided by the claim's
// condition; the table's TTL only collects what has expired, however late.
//
// A write whose answer didn't come (no answer, a connection reset, a torn
// answer, a 5xx) is reported as unknown and never as failed; the engine finds
// out by the record itself.
//
// # What it does not
//
// It isn't for global tables whose Regions write at the same time and the last
// writer wins: there, two Regions can win one claim. A response over
// [Options.Inline] lies in items beside the record, which cost a read each.
package dynamo
