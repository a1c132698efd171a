// Package dynamo keeps the records of package idem in one DynamoDB table.
//
//	client, err := dynamo.NewClient()
//	…
//	store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
//	…
//	engine := idem.New(store)
//
// An item holds a key: the table has a partition key and no sort key. Its one index has
// the records that wait for people; no other record costs a write of it. A new request
// takes one conditional PutItem and one conditional UpdateItem, 2 write units while the
// record has at most 1 KB. A replay, a request in flight and a mismatch each take one
// refused PutItem, which returns the record in the same call.
// docs/operate/item.md describes the layout.
//
// The functions that deliver staged jobs and complete abandoned operations are in
// package internal/background/stream.
//
// # Guarantees
//
// Every condition names owner and version of the record, so the table refuses a
// write by a worker that lost its lease. The claim's condition decides expiry; the
// table's TTL only deletes expired records, however late.
//
// A write without a complete answer (no answer, a connection reset, a torn answer, a
// 5xx) is reported as unknown and never as failed; the engine then reads the record
// to find out.
//
// # Limits
//
// Package dynamo isn't for global tables whose Regions write at the same time and
// whose last writer wins: there, two Regions can win the same claim. A response over
// [Options.Inline] is stored in items beside the record, each of which costs a read.
package dynamo
