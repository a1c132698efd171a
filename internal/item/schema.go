package item

// Layout is the layout version of all items. A program never changes a record of an
// unknown version, since the program could misread the record. Programs of two
// successive releases may share a table. So one release must learn to read a new
// version before a later release writes that version.
const Layout = "1"

// The parts of the attribute seal. The part sealedContents belongs to a sealed req,
// resp or job, and replaces parts that an unsealed one must have. So programs that
// don't know sealing report a sealed record as corrupt.
const (
	sealKey        = "k" // S  the key that wraps the data key
	sealAlgorithm  = "a" // S
	sealWrapped    = "w" // B
	sealedContents = "x" // B
)

// The parts of the attribute resp; the constants over… are parts of respOverflow.
// respBody is also an attribute of companions.
const (
	respStatus   = "s" // N
	respHeader   = "h" // M  name → S, or L of S
	respBody     = "b" // B  in a companion: a part of the body
	respZipped   = "z" // BOOL
	respOverflow = "o" // M
	overOwner    = "o" // S
	overFirst    = "n" // N
	overCount    = "c" // N  0: the body isn't stored
	overLength   = "l" // N
	overSum      = "d" // B  SHA-256 of the body
)

// The parts of a job.
const (
	jobKind   = "k"  // S
	jobArgs   = "a"  // S  JSON; absent if sealed, since sealedContents holds the arguments
	jobGroup  = "g"  // S
	JobTries  = "t"  // N
	JobFailed = "f"  // S  why the job was parked
	jobAt     = "at" // N  ms  due time; absent: due at once
	JobBegun  = "b"  // N  ms  when the delivery of a later job began
	jobTrace  = "tp" // S  trace context of the phase that staged the job
)

// The parts of the attribute req. The parts of the body have the same names as in resp.
const (
	reqMethod   = "m" // S
	reqPath     = "p" // S
	reqQuery    = "q" // S
	reqHeader   = "h" // M
	reqIdentity = "i" // L  kind, subject
	reqSnapshot = "d" // B  data of the adapter
)

// The parts of a decision of an operator.
const (
	settledBy   = "w" // S
	settledAt   = "t" // N  epoch ms
	settledWhat = "d" // S
	settledFrom = "f" // S  state before
	settledTo   = "n" // S  state after
	settledID   = "i" // S  id of this decision
)

// The parts of a handover.
const (
	handAt   = "t" // N  epoch ms
	handKind = "k" // S  release, withheld, retry, completer
	handFn   = "f" // S
	handErr  = "e" // S
)

// The parts of the attribute asked.
const (
	askedPhase = "p" // S
	askedAt    = "t" // N  epoch ms
	askedTimes = "n" // N
	askedSaid  = "d" // S
	askedSent  = "s" // N  epoch ms  last moment at which a copy of the call in doubt may have been sent; absent once the doubt has ended or another copy may be sent
)

// The parts of the attribute wait_in.
const (
	waitPhase  = "p" // S
	waitJob    = "j" // S
	waitKind   = "k" // S
	waitReason = "f" // S
	waitTries  = "t" // N, of a job
)

// AttrAbout is a finding's attribute with the key of the item that the finding is about.
const AttrAbout = "about" // S

// phaseIntent is the third part of a phase that has only begun. Programs that don't know
// phaseIntent report the record as corrupt, and don't continue the operation.
const phaseIntent = "?"

// phaseSaid is the third part of a phase whose result a person gave. The fourth part is
// the result's shape.
const phaseSaid = "!"
