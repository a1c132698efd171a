// Package item has what the store and the readers of the table's stream share: the
// attributes of a record's item (docs/operate/item.md), encoding and decoding, the
// meaning of AWS errors, and the wait before a request is sent again.
//
// Package item doesn't decide which writes are made. Package dynamo makes the writes of a
// record's holder, and internal/background/stream writes what happens to jobs.
package item
