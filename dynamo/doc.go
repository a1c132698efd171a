// Package dynamo keeps the records of package idem in one DynamoDB table.
//
//	client, err := dynamo.NewClient()
//	…
//	store, err := dynamo.New(client, os.Getenv("IDEM_TABLE"))
//	…
//	engine := idem.New(store)
//
// The table has a partition key and no sort key, and each record is one item. The
// table's one index holds only the records and findings that wait for people, so other
// records cost no write to the index. A new request takes one conditional PutItem and
// one conditional UpdateItem, which together cost 2 write units if the record has at
// most 1 KB. A replay, a request in flight and a mismatch each take one refused
// PutItem, which returns the record in the same call. If the request says that it is a
// retry, the engine instead reads the record first, by one GetItem.
// docs/operate/item.md describes the layout.
//
// The functions that deliver staged jobs and complete abandoned operations are in
// package internal/background/stream.
//
// # Guarantees
//
// After the claim, every write of an attempt to its record has a condition on the owner
// and version, so the table refuses a write by an attempt that lost its lease. The
// claim's condition, not the table's TTL, decides whether a record has expired. The TTL
// only deletes expired records, and may delete them late.
//
// The store reports a write without a complete answer (no answer, a connection reset, an answer
// that was cut off, a 5xx) as unknown, never as failed. The engine then reads the record to learn
// the outcome.
//
// # Limits
//
// Don't use package dynamo on global tables where several Regions write and the last
// writer wins: two Regions can win the same claim.
//
// A response over [Options.Inline] is stored in companions, which are items beside the
// record. A replay must read each companion.
package dynamo
