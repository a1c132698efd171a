// Package state is the state machine of a record: every decision about a record and
// every transition from one version to the next. All functions are pure. The engine
// and the background functions share them.
//
// A transition touches neither Owner nor Ver: [Stamp] sets both, and whoever writes
// the record calls it.
package state
