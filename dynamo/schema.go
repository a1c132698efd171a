package dynamo

// layoutVersion is written to every record. A record of another version is not
// touched: an older program must not half-understand a newer one's record.
const layoutVersion = "1"

// The attributes of a record, one item for each key. See docs/item.md for what
// each is for. Reserved words of DynamoDB are owner, region and scope: they
// need placeholders in expressions.
const (
	attrPK      = "pk"         // S  v1#<namespace>#<hash of scope and key>
	attrVersion = "v"          // N  layout version
	attrState   = "st"         // S  open, done, stuck; companions have none
	attrOwner   = "owner"      // S  nonce of the attempt that holds or last held it
	attrVer     = "ver"        // N  counts every write by a holder
	attrLease   = "lease_ms"   // N  end of the lease; 0 = released
	attrExpires = "exp_s"      // N  the table's TTL attribute; absent while the record must be kept
	attrKeep    = "keep"       // S  open, jobs; present exactly while exp_s is absent
	attrUntil   = "until_s"    // N  end of replay, where it differs from exp_s
	attrTomb    = "tomb_s"     // N  seconds by which exp_s is to outlive until_s, of a record kept for jobs
	attrFP      = "fp"         // S  fingerprint
	attrCred    = "cred"       // S  keyed hash of what an unverified caller presented
	attrSecret  = "fpk"        // S  id of the secret of fp and cred
	attrID      = "id"         // S  server-made id of the operation
	attrPhases  = "phases"     // L  of [name, result]
	attrCalls   = "calls"      // M  call → how many; of an open record, absent in older ones
	attrDoubts  = "doubts"     // L  calls that may have been made and of which no phase tells
	attrDoubt   = "doubt_ms"   // N  since when
	attrSent    = "sent"       // M  call → hash of what it sends
	attrJobs    = "jobs"       // M  phase.index → job; the claim writes {} and nobody removes the map
	attrRequest = "req"        // M  what is needed to run it again, until it is done
	attrResp    = "resp"       // M  the answer
	attrTries   = "tries"      // N  attempts by the completer
	attrLastErr = "last_err"   // S  for operators
	attrBlocked = "blocked"    // BOOL  open, but its program refuses to go on; absent otherwise
	attrDeliver = "delivery"   // BOOL  its key names a delivery only; absent otherwise
	attrCreated = "created_ms" // N  time of the claim
	attrRun     = "run_ms"     // N  begin of the last attempt
	attrSettled = "settled"    // L  of what operators decided
	attrRegion  = "region"     // S  where it was claimed
	attrRoute   = "route"      // S  for operators
	attrScope   = "scope"      // S  for operators
	attrFn      = "fn"         // S  function that claimed it, or took it over for its client
	attrHandler = "hn"         // S  handler in that function
	attrTenant  = "tn"         // S  tenant it was invoked for
)

// The parts of resp, and of the companions that hold a large body.
const (
	respStatus   = "s" // N
	respHeader   = "h" // M  name → S, or L of S
	respBody     = "b" // B  also of a companion
	respGzip     = "z" // BOOL
	respOverflow = "o" // M
	overOwner    = "o" // S
	overFirst    = "n" // N
	overCount    = "c" // N  0 = not kept
	overLength   = "l" // N
	overSum      = "d" // B  SHA-256 of the body
)

// The parts of a job.
const (
	jobKind   = "k" // S
	jobArgs   = "a" // S  JSON
	jobGroup  = "g" // S
	jobTries  = "t" // N
	jobFailed = "f" // S  why it was parked
)

// The parts of req. Its body has the names of resp's.
const (
	reqMethod   = "m" // S
	reqPath     = "p" // S
	reqQuery    = "q" // S
	reqHeader   = "h" // M
	reqIdentity = "i" // L  kind, subject
	reqSnapshot = "d" // B  the adapter's
)

// The parts of a decision of an operator.
const (
	settledBy   = "w" // S
	settledAt   = "t" // N  epoch ms
	settledWhat = "d" // S
)

// phaseIntent is the third part of a phase that has only begun. Programs that
// don't know of it find the phase malformed, and don't run it.
const phaseIntent = "?"

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
