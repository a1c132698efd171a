package model

// Rule is a rule of the protocol. A model without one of them breaks an invariant.
type Rule uint8

// The rules.
const (
	ClaimCond Rule = iota
	ClaimSeen
	OwnNonce
	MismatchLock
	LeaseHolds
	StuckStays
	RFJudges
	RFNow

	TakeOwner
	TakeVer
	TakeBump
	TakeExp
	TakeDoubts
	TakeOwnerK
	TakeLease
	TriesTake

	CommitOwner
	CommitVer
	PhaseKeep
	ClaimOpen
	NoExp
	Adopt
	JobEntry

	AdoptID
	RelDoubts
	MarkFirst
	EarlyWaits
	Memory
	IntentFirst
	IntentIsUnknown
	UnknownIsStuck
	IntentNeedsOutcome

	AskKeyless
	Within
	LastCopy
	FromBegin
	MarkAnew
	LeaseFirst
	NeverAgain
	AskCounts

	CompOwner
	CompTry
	CompBefore
	FinKeep

	AckLast
	AckID
	AckSize
	Clean

	RelKeepID
	RelDoubted
	AcceptedIsKept
	RelForm
	RelFree

	KeptCall
	TellKept
	TellLanded
	BodyOrOpen

	OpCond
	BumpOwner
	EndLeaseDoubts
	ForgetAsks

	OwnScheme
	Incomparable
	FirstChecks
	SecondChecks
	BesideSeen
	FenceNonce
	Bury
	BuryOver
	ClaimsHome
	Neighbours
	OtherOver

	ruleCount
)

// rule describes a rule: its sentence for people, the configuration that shows the
// need for it, and the invariant that breaks there without it.
type rule struct {
	name, says string
	in         string
	breaks     Invariant
	belt       string // why nothing breaks: another rule does the same, or the rule isn't about safety
}

var rules = [ruleCount]rule{
	ClaimCond:    {name: "ClaimCond", says: "a claim writes only where no record is, or an expired one", in: "a lost answer", breaks: Robbed},
	ClaimSeen:    {name: "ClaimSeen", says: "a claim replaces a freed record only if it has seen it", in: "a call that can't be repeated", breaks: Robbed},
	OwnNonce:     {name: "OwnNonce", says: "each attempt has a nonce of its own", in: "a call that can't be repeated", breaks: Mixed},
	MismatchLock: {name: "MismatchLock", says: "another request is refused before the lease is looked at", in: "operators forget and end leases", breaks: Mismatched},
	LeaseHolds:   {name: "LeaseHolds", says: "a client takes over only after the end of the lease", in: "a lost answer", breaks: Robbed},
	StuckStays:   {name: "StuckStays", says: "a client doesn't take over an operation that waits for an operator", in: "a call that can't be repeated", breaks: OnStuck},
	RFJudges:     {name: "RFJudges", says: "a read before the claim is judged as a record that refuses a claim", in: "reads before the claim", breaks: Mismatched},
	RFNow:        {name: "RFNow", says: "a read before the claim shows the record as it is, not as it was", in: "reads before the claim of a freed key", breaks: Misjudged},

	TakeOwner:  {name: "TakeOwner", says: "a client's take-over is conditional on the owner that it saw", in: "a call that can't be repeated", breaks: Mixed},
	TakeVer:    {name: "TakeVer", says: "a take-over is conditional on the version that it saw", in: "a lost answer", breaks: Robbed},
	TakeBump:   {name: "TakeBump", says: "take-over and release raise the version", in: "a lost answer", breaks: Robbed},
	TakeExp:    {name: "TakeExp", says: "take-over and renewal renew the expiry, where there is one", in: "operators forget and end leases", breaks: Robbed},
	TakeDoubts: {name: "TakeDoubts", says: "a take-over from an attempt that never came back puts in doubt the call that it had marked", in: "an answer before the call", breaks: CallHidden},
	TakeOwnerK: {name: "TakeOwnerK", says: "a ticket is good for the owner that it names only", in: "a call first", breaks: Mixed},
	TakeLease:  {name: "TakeLease", says: "a completer's take-over is conditional on the end of the lease", in: "a lost answer", breaks: Robbed},
	TriesTake:  {name: "TriesTake", says: "the take-over itself counts the try", in: "a lost answer", breaks: NeverEnds},

	CommitOwner: {name: "CommitOwner", says: "each write of a holder is conditional on its nonce", in: "a call that can't be repeated", breaks: Zombie},
	CommitVer:   {name: "CommitVer", says: "each write of a holder is conditional on the version that it saw", in: "a call that can't be repeated", breaks: UserTwice},
	PhaseKeep:   {name: "PhaseKeep", says: "a record with committed phases is kept", in: "operators forget and end leases", breaks: Forgotten},
	ClaimOpen:   {name: "ClaimOpen", says: "a record with a stored request is kept from its claim on", in: "expiry, and a second request", breaks: Forgotten},
	NoExp:       {name: "NoExp", says: "a record that is kept has no expiry", in: "expiry of a request that isn't stored", breaks: Forgotten},
	Adopt:       {name: "Adopt", says: "after a lost answer the stored result counts, not the result at hand", in: "lost answers and conflicts", breaks: KeyForTwoCalls},
	JobEntry:    {name: "JobEntry", says: "a commit sets single jobs, never all of them", in: "two retries and a drain that dies", breaks: JobBack},

	AdoptID:            {name: "AdoptID", says: "derived keys are made from the operation's id, not from the attempt's", in: "a lost answer", breaks: TwoKeys},
	RelDoubts:          {name: "RelDoubts", says: "a release records the calls that its attempt may have made", in: "a provider that forgets", breaks: CalledTwice},
	MarkFirst:          {name: "MarkFirst", says: "before a call, the record says that it follows", in: "an answer before the call", breaks: CallHidden},
	EarlyWaits:         {name: "EarlyWaits", says: "an answer before a call that may have been made doesn't end the operation", in: "an answer before the call", breaks: CallHidden},
	Memory:             {name: "Memory", says: "a call in doubt is not repeated once its provider may have forgotten it", in: "a provider that forgets", breaks: CalledTwice},
	IntentFirst:        {name: "IntentFirst", says: "the begin of a call that can't be repeated is committed before the call", in: "a call that can't be repeated", breaks: CalledTwice},
	IntentIsUnknown:    {name: "IntentIsUnknown", says: "a call that has begun and never came back is not made again", in: "a call that can't be repeated", breaks: CalledTwice},
	UnknownIsStuck:     {name: "UnknownIsStuck", says: "an error of a call that can't be repeated leaves the operation to people", in: "a call that can't be repeated", breaks: CalledTwice},
	IntentNeedsOutcome: {name: "IntentNeedsOutcome", says: "an operator must say what became of a call that has begun", in: "a call that can't be repeated", breaks: CalledTwice},

	AskKeyless: {name: "AskKeyless", says: "a call without a key that may have been made is looked up, not repeated", in: "a look-up, and no keys", breaks: CalledTwice},
	Within:     {name: "Within", says: "a look-up that finds no call counts only after within", in: "a look-up, and no keys", breaks: CalledTwice},
	LastCopy:   {name: "LastCopy", says: "within counts from the last moment at which a copy of the call may have been sent", in: "a look-up, and a provider that forgets", breaks: CalledTwice},
	FromBegin:  {name: "FromBegin", says: "a look-up counts from its begin, not from its answer", in: "a look-up, and no keys", breaks: CalledTwice},
	MarkAnew:   {name: "MarkAnew", says: "a call that its look-up has not found is made after a write that says so", in: "a look-up, and no keys", breaks: CalledTwice},
	LeaseFirst: {name: "LeaseFirst", says: "an attempt whose lease is over makes no call that is looked up", in: "a look-up, and no keys", breaks: CalledTwice},
	NeverAgain: {name: "NeverAgain", says: "a call that is never made again is left to people if its look-up finds none", in: "a look-up, and a call that is never made again", breaks: CalledTwice},
	AskCounts:  {name: "AskCounts", says: "a look-up after within that decides nothing counts as a try", in: "a look-up, no keys, and a completer", breaks: NeverEnds},

	CompOwner:  {name: "CompOwner", says: "companions are named by the nonce of their writer", in: "a lost answer", breaks: ReplayDiffers},
	CompTry:    {name: "CompTry", says: "an attempt uses no name of a companion twice", in: "lost answers and conflicts", breaks: ReplayDiffers},
	CompBefore: {name: "CompBefore", says: "companions are written before the finish that names them", in: "a lost answer", breaks: ReplayDiffers},
	FinKeep:    {name: "FinKeep", says: "a finish with undelivered jobs keeps the record", in: "operators forget and end leases", breaks: JobLost},

	AckLast: {name: "AckLast", says: "a job is acknowledged after its delivery", in: "a lost answer", breaks: JobLost},
	AckID:   {name: "AckID", says: "an acknowledgement is conditional on the operation's id", in: "expiry, and a second request", breaks: JobLost},
	AckSize: {name: "AckSize", says: "the last acknowledgement is conditional on the number of jobs", in: "two retries and a drain that dies", breaks: JobLost},
	Clean:   {name: "Clean", says: "a finished record that is kept for jobs it no longer has is let go", in: "operators forget and end leases", breaks: KeptForEver},

	RelKeepID:      {name: "RelKeepID", says: "a release doesn't free the key after a call with a derived key", in: "a call first, and no completer", breaks: Forgotten},
	RelDoubted:     {name: "RelDoubted", says: "a release doesn't free the key of an operation with a call in doubt", in: "a call first, and no completer", breaks: Forgotten},
	AcceptedIsKept: {name: "AcceptedIsKept", says: "a release doesn't free a key whose request is stored, unless the handler refused it", in: "a call first", breaks: Forgotten},
	RelForm:        {name: "RelForm", says: "a release that meets an earlier write of its attempt decides again from the record", in: "two retries and a drain that dies", breaks: Forgotten},
	RelFree:        {name: "RelFree", says: "the release of an untouched claim frees the key", belt: "not about safety: an untouched claim must not lock the key for a lifetime"},

	KeptCall:   {name: "KeptCall", says: "a record is kept before its attempt makes a call", in: "a call first, and no completer", breaks: Forgotten},
	TellKept:   {name: "TellKept", says: "an answer that isn't stored is told only if the operation doesn't go on", in: "a call first", breaks: Believed},
	TellLanded: {name: "TellLanded", says: "an answer that isn't stored is told only after its release is known to have freed the key", in: "a call first", breaks: Believed},
	BodyOrOpen: {name: "BodyOrOpen", says: "if the body of an answer can't be written, the operation stays open", in: "an answer whose body can't be written", breaks: ReceiptLost},

	OpCond:         {name: "OpCond", says: "a settlement is conditional on the stuck record that the operator saw", in: "stuck, and two operators", breaks: AfterDone},
	BumpOwner:      {name: "BumpOwner", says: "who gives up or settles an operation writes a nonce of its own into it", in: "stuck, and two operators", breaks: OnStuck},
	EndLeaseDoubts: {name: "EndLeaseDoubts", says: "an operator who ends a lease puts the calls of its attempt in doubt", in: "a provider that forgets", breaks: Forgotten},
	ForgetAsks:     {name: "ForgetAsks", says: "an operator doesn't forget committed work, calls in doubt or jobs by the way", in: "operators forget and end leases", breaks: Forgotten},

	OwnScheme:    {name: "OwnScheme", says: "a request is compared by the scheme that the record names", in: "a deploy that changes the fingerprint", breaks: Misjudged},
	Incomparable: {name: "Incomparable", says: "a request that can't be compared with a record is not another one", in: "a deploy that changes the fingerprint", breaks: Misjudged},
	FirstChecks:  {name: "FirstChecks", says: "the first release's claims check in their transaction that nothing lives under the new scope", in: "a deploy that changes the scope", breaks: TwoLive},
	SecondChecks: {name: "SecondChecks", says: "the second release's claims check in their transaction that nothing lives under the former scope", in: "a deploy that changes the scope", breaks: TwoLive},
	BesideSeen:   {name: "BesideSeen", says: "a claim is won beside a record only as its attempt has fenced it", in: "a deploy that changes the scope", breaks: TwoLive},
	FenceNonce:   {name: "FenceNonce", says: "who fences a record writes a nonce that is used nowhere else", in: "a deploy that changes the scope", breaks: TwoLive},
	Bury:         {name: "Bury", says: "an attempt fences the holders of an expired or freed record under the other scope", belt: "not about safety: without it, the record locks the key until TTL removes it"},
	BuryOver:     {name: "BuryOver", says: "only a record whose key is free is fenced", in: "a deploy that changes the scope", breaks: Mixed},
	ClaimsHome:   {name: "ClaimsHome", says: "a key that is free is claimed under the release's own scope, wherever the key was", in: "the end of a change of scope", breaks: TwoLive},
	Neighbours:   {name: "Neighbours", says: "only two neighbouring releases run side by side", in: "a deploy that changes the scope", breaks: TwoLive},
	OtherOver:    {name: "OtherOver", says: "a release that knows one scope begins when nothing under the other scope is open any more, or an answer", in: "the end of a change of scope", breaks: TwoLive},
}

// String returns the rule's name.
func (r Rule) String() string { return rules[r].name }

// Model is the protocol in one configuration, with some rules off.
type Model struct {
	Config
	off   [ruleCount]bool
	trace bool // of a real run: answers are remembered, and nothing is bounded
}

func (m *Model) on(r Rule) bool { return !m.off[r] }

// without returns the model without a rule.
func (c Config) without(off ...Rule) *Model {
	m := &Model{Config: c}
	for _, r := range off {
		m.off[r] = true
	}
	return m
}
