// Package state is the state machine of a record: every decision about a record and
// every transition from one version to the next. All functions are pure. The engine
// and the background functions share them.
//
// A transition doesn't set Owner and Ver: the writer of the record calls [Stamp], which sets both.
//
// docs/inside/architecture.md draws the states and transitions below. Most
// labels are functions of this package. The others are: the end of a period ("the lease
// ends", "expires"), a write of the store ("let go"), and a case ("with jobs", "without
// jobs").
//
//	[*] --> held: Claimed
//	held --> held: Calling, CallingOnce, Advanced, IntentReplaced, Renewed
//	held --> abandoned: the lease ends
//	held --> released: Released, LeaseEnded
//	abandoned --> released: LeaseEnded
//	abandoned --> held: TakenByClient, TakenUp
//	released --> held: TakenByClient, TakenUp
//	held --> stuck: MadeStuck
//	stuck --> stuck: Emptied
//	stuck --> released: Settled
//	released --> released: Settled
//	held --> done: Finished
//	abandoned --> done: Settled with Finished
//	released --> done: Settled with Finished
//	stuck --> done: Settled with Finished
//	held --> [*]: Released, Forgotten
//	abandoned --> [*]: expires, Forgotten
//	released --> [*]: expires, Forgotten
//	stuck --> [*]: Forgotten
//	done --> kept: with jobs
//	done --> replayable: without jobs
//	kept --> replayable: let go
//	replayable --> replayable: Erased
//	[*] --> [*]: Erased
//	kept --> [*]: let go, Forgotten
//	replayable --> [*]: expires, Forgotten
package state
