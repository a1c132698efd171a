package item

// Layout is the layout version of all items. A record of another version is not touched:
// an older program must not half-understand a newer one's record. So a release reads a
// new version before the next one writes it.
const Layout = "1"

// The attributes of a record, one item for each key. docs/operate/item.md explains them. The
// reserved words of DynamoDB among them, owner, region and scope, need placeholders
// in expressions.
const (
	AttrPK      = "pk"         // S  v1#<namespace>#<hash of scope and key>
	AttrVersion = "v"          // N  layout version; no write changes it
	AttrState   = "st"         // S  open, done, stuck; companions have none
	AttrOwner   = "owner"      // S  nonce of the attempt that holds or last held the record
	AttrVer     = "ver"        // N  counts every write by a holder
	AttrLease   = "lease_ms"   // N  end of the lease; 0 = released; a finish removes it
	AttrExpires = "exp_s"      // N  the table's TTL attribute; absent while the record must be kept
	AttrKeep    = "keep"       // S  open, jobs; present exactly while exp_s is absent
	AttrUntil   = "until_s"    // N  end of replay, if it differs from exp_s
	AttrTomb    = "tomb_s"     // N  seconds from until_s to exp_s, of a record kept for jobs
	AttrFP      = "fp"         // B, or S  fingerprint; S if it isn't hex
	AttrSecret  = "fpk"        // S  id of the secret of fp
	AttrScheme  = "fps"        // S  scheme of fp; absent for the default
	AttrID      = "id"         // S  server-made id of the operation
	AttrPhases  = "phases"     // L  of [name, result]
	AttrCalls   = "calls"      // M  call → count; absent until the first call, and once done
	AttrDoubts  = "doubts"     // L  calls that may have been made but are in no phase
	AttrDoubt   = "doubt_ms"   // N  time since when there are doubts
	AttrSent    = "sent"       // M  call → hash of the content it sends
	AttrJobs    = "jobs"       // M  phase.index → job; from the first job on, and no write removes the map
	AttrRequest = "req"        // M  the parts of the request to run it again, until it is done
	AttrResp    = "resp"       // M  the answer
	AttrTries   = "tries"      // N  attempts by the completer
	AttrLastErr = "last_err"   // S  for operators
	AttrBlocked = "blocked"    // BOOL  open, but its program refuses to go on; absent otherwise
	AttrDeliver = "delivery"   // BOOL  the key names a delivery only; absent otherwise
	AttrCreated = "created_ms" // N  time of the claim
	AttrRun     = "run_ms"     // N  begin of the last attempt; absent = created_ms
	AttrSettled = "settled"    // L  decisions of operators
	AttrTimes   = "phase_ms"   // L  of N: ms from the claim to each phase's commit; 0 = unknown
	AttrHands   = "hands"      // L  take-overs and releases; absent if the first attempt finishes
	AttrRegion  = "region"     // S  Region of the claim
	AttrRoute   = "route"      // S  for operators
	AttrScope   = "scope"      // S  whose the key is: operation, tenant and caller
	AttrFn      = "fn"         // S  function that claimed the record, or took it over for its client
	AttrHandler = "hn"         // S  handler in that function
	AttrTenant  = "tn"         // S  tenant of the invocation
	AttrWait    = "waits"      // S  cause#shard: partition key of the index; present only while the record waits for people
	AttrSince   = "wait_ms"    // N  since when; sort key of the index
	AttrWaitIn  = "wait_in"    // M  where it stands; for the list
	AttrTrace   = "tp"         // S  trace context of the attempt that claimed the record
	AttrSeal    = "seal"       // M  data key of the sealed contents; absent without encryption
)

// The parts of seal, and of a sealed req or resp. Programs that don't know them find
// such a record corrupt, because required parts are missing.
const (
	sealKey        = "k" // S  the key that wraps the data key
	sealAlgorithm  = "a" // S
	sealWrapped    = "w" // B
	sealedContents = "x" // B
)

// The parts of resp, and of the companions that hold a large body.
const (
	respStatus   = "s" // N
	respHeader   = "h" // M  name → S, or L of S
	respBody     = "b" // B  also of a companion
	respZipped   = "z" // BOOL
	respOverflow = "o" // M
	overOwner    = "o" // S
	overFirst    = "n" // N
	overCount    = "c" // N  0 = not kept
	overLength   = "l" // N
	overSum      = "d" // B  SHA-256 of the body
)

// The parts of a job.
const (
	jobKind   = "k"  // S
	jobArgs   = "a"  // S  JSON; sealed, x instead
	jobGroup  = "g"  // S
	JobTries  = "t"  // N
	JobFailed = "f"  // S  why the job was parked
	jobTrace  = "tp" // S  trace context of the phase that staged the job
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
	settledFrom = "f" // S  state before
	settledTo   = "n" // S  state after
)

// The parts of a handover.
const (
	handAt   = "t" // N  epoch ms
	handKind = "k" // S  release, retry, completer
	handFn   = "f" // S
	handErr  = "e" // S
)

// The parts of wait_in.
const (
	waitPhase  = "p" // S
	waitJob    = "j" // S
	waitKind   = "k" // S
	waitReason = "f" // S
)

// AttrAbout names the unreadable item in a finding about it.
const AttrAbout = "about" // S

// phaseIntent is the third part of a phase that has only begun. Programs that don't
// know the mark find the phase malformed, and don't run it.
const phaseIntent = "?"
