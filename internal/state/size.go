package state

import (
	"net/http"

	"github.com/samekey/samekey/idem/store"
)

// Room is the number of bytes that phases and jobs must leave free in an open record.
// Take-overs and releases add names, reasons and times to the record. If the record
// were full, the store would refuse take-overs and releases, and nobody could continue
// or release the operation.
const Room = 16 << 10

// number is the size of a small number in an item, including the overhead of a map entry.
const number = 4

// SizeOf returns the uncompressed size of a record's phases, jobs and calls, and of the request and
// answer without bodies.
func SizeOf(r *store.Record) (n int) {
	headers := func(h http.Header) {
		for name, values := range h {
			for _, v := range values {
				n += len(name) + len(v)
			}
		}
	}
	for _, p := range r.Phases {
		n += len(p.Name) + len(p.Result) + len(p.Shape)
	}
	for name, j := range r.Jobs {
		n += len(name) + len(j.Kind) + len(j.Args) + len(j.Group) + len(j.Failed) + len(j.Trace.Parent) + len(j.Trace.State)
	}
	for call := range r.Calls {
		n += len(call) + number
	}
	n += len(r.Mark)
	for _, call := range r.Doubts {
		n += len(call) + 1
	}
	for call, hash := range r.Sent {
		n += len(call) + len(hash)
	}
	if r.Asked != nil {
		n += len(r.Asked.Phase) + len(r.Asked.Said)
	}
	if in := r.Input; in != nil {
		n += len(in.Path) + len(in.Query) + len(in.Snapshot)
		headers(in.Header)
	}
	if r.Response != nil {
		headers(r.Response.Header)
	}
	return n
}
