// Package item holds what the store and the readers of its stream both need: the
// form of a record's item (docs/item.md), its attributes, how it is encoded and
// decoded, what an error of AWS means, and how long to wait before a request is
// sent again.
//
// It decides nothing: package dynamo writes for those who hold a record,
// dynamo/stream writes about jobs.
package item
