package dynamo

const (
	// claimCondition lets a claim in over nothing, or over an expired record:
	//   - attribute_not_exists: two claims at once, one wins;
	//   - exp_s < :now: TTL deletes late, so an expired record may still be there;
	//     false where exp_s is absent, so a record to be kept is never claimed over;
	//   - owner <> :me: a late copy of this claim must not revive a record that
	//     its own attempt has freed since.
	claimCondition = "attribute_not_exists(pk) OR (exp_s < :now AND #owner <> :me)"

	// holderCondition is on every later write: a worker that lost its lease, or
	// a late copy of its own earlier write, changes nothing. Every holder's write
	// raises ver, so an equal ver proves an unchanged lease.
	holderCondition = "#owner = :owner AND ver = :ver"

	// takeCondition is on a take-over by a ticket, which knows nothing else of the
	// record; takeReleased or takeAbandoned, and conditions on fn, hn and tn follow.
	//   - v: a program must not take over what it can't read;
	//   - st: a ticket that is late must not open what has ended, or is stuck;
	//   - req, and no exp_s: without its request it can't be completed, and one whose
	//     key is to become free again must not be held beyond that;
	//   - no req.o: a request that lies elsewhere may be missing, and is read first;
	//   - fn, hn, tn: another handler would answer for it, and its answer would stay.
	takeCondition = holderCondition + " AND v = :v AND st = :open AND attribute_exists(req) AND attribute_not_exists(req.o) AND attribute_not_exists(exp_s)"
	// takeReleased: its holder has said which calls are in doubt.
	takeReleased = " AND lease_ms = :zero"
	// takeAbandoned: the holder may be alive until its lease is over; and takeDoubts
	// would overwrite what is in doubt already.
	takeAbandoned = " AND lease_ms > :zero AND lease_ms <= :now AND attribute_not_exists(doubts)"

	takeSet = "SET #owner = :owner1, ver = :ver1, lease_ms = :lease, run_ms = :now, tries = if_not_exists(tries, :zero) + :one"
	// takeDoubts: calls of the attempt that never came back, since it began.
	takeDoubts = ", doubts = :doubts, doubt_ms = run_ms"
)
