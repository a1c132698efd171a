package state

// The kinds of a [store.Handover].
const (
	HandoverRelease   = "release"   // an attempt ended without an answer, and gave the record back
	HandoverWithheld  = "withheld"  // a release after an answer of the handler that nobody heard: it could not be stored, and the operation goes on
	HandoverRetry     = "retry"     // a client's retry took the record over
	HandoverCompleter = "completer" // a completer took the record over
)
