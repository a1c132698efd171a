package item

// LayoutVersion is written to every record. A record of another version is not
// touched: an older program must not half-understand a newer one's record.
const LayoutVersion = "1"

// The attributes of a record, one item for each key. See docs/item.md for what
// each is for. Reserved words of DynamoDB are owner, region and scope: they
// need placeholders in expressions.
const (
	AttrPK      = "pk"         // S  v1#<namespace>#<hash of scope and key>
	AttrVersion = "v"          // N  layout version
	AttrState   = "st"         // S  open, done, stuck; companions have none
	AttrOwner   = "owner"      // S  nonce of the attempt that holds or last held it
	AttrVer     = "ver"        // N  counts every write by a holder
	AttrLease   = "lease_ms"   // N  end of the lease; 0 = released
	AttrExpires = "exp_s"      // N  the table's TTL attribute; absent while the record must be kept
	AttrKeep    = "keep"       // S  open, jobs; present exactly while exp_s is absent
	AttrUntil   = "until_s"    // N  end of replay, where it differs from exp_s
	AttrTomb    = "tomb_s"     // N  seconds by which exp_s is to outlive until_s, of a record kept for jobs
	AttrFP      = "fp"         // S  fingerprint
	AttrCred    = "cred"       // S  keyed hash of what an unverified caller presented
	AttrSecret  = "fpk"        // S  id of the secret of fp and cred
	AttrID      = "id"         // S  server-made id of the operation
	AttrPhases  = "phases"     // L  of [name, result]
	AttrCalls   = "calls"      // M  call → how many; of an open record, absent in older ones
	AttrDoubts  = "doubts"     // L  calls that may have been made and of which no phase tells
	AttrDoubt   = "doubt_ms"   // N  since when
	AttrSent    = "sent"       // M  call → hash of what it sends
	AttrJobs    = "jobs"       // M  phase.index → job; the claim writes {} and nobody removes the map
	AttrRequest = "req"        // M  what is needed to run it again, until it is done
	AttrResp    = "resp"       // M  the answer
	AttrTries   = "tries"      // N  attempts by the completer
	AttrLastErr = "last_err"   // S  for operators
	AttrBlocked = "blocked"    // BOOL  open, but its program refuses to go on; absent otherwise
	AttrDeliver = "delivery"   // BOOL  its key names a delivery only; absent otherwise
	AttrCreated = "created_ms" // N  time of the claim
	AttrRun     = "run_ms"     // N  begin of the last attempt
	AttrSettled = "settled"    // L  of what operators decided
	AttrRegion  = "region"     // S  where it was claimed
	AttrRoute   = "route"      // S  for operators
	AttrScope   = "scope"      // S  for operators
	AttrFn      = "fn"         // S  function that claimed it, or took it over for its client
	AttrHandler = "hn"         // S  handler in that function
	AttrTenant  = "tn"         // S  tenant it was invoked for
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
	JobTries  = "t" // N
	JobFailed = "f" // S  why it was parked
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
