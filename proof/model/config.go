package model

// Role is what an attempt is.
type Role uint8

// The roles.
const (
	Client    Role = iota
	ReadFirst      // a client that reads before its claim
	Completer
	Operator
)

// Config bounds a world: who uses the key, which phases its handler has, and how
// much may go wrong. Within the bounds every order of steps is checked.
type Config struct {
	Name      string
	Who       []Role
	Request   []uint8 // fingerprint of each attempt's request
	Phases    [2]Phase
	Jobs      Jobs // that are staged
	Resumable bool // the request is stored
	MaxTries  uint8
	Expire    bool // the key's lifetime may end
	Forgets   bool // the provider may forget its calls
	LookUp    bool // the call's phase has a look-up
	Never     bool // the call is never made again: Remembers(0), and no bound of time
	EndLeases bool // an operator may end leases
	Forget    bool // an operator may forget operations
	Change    Change
	Program   []Program // of each attempt, if a deploy changes something
	Left      budget
	States    int // how many the check visits
}

// configs are the configurations of the check.
func configs() []Config {
	call := [2]Phase{Atomic, Foreign}
	return []Config{
		{
			Name: "retry and completer", Who: []Role{Client, Client, Completer}, Request: []uint8{1, 1, 1}, Phases: call, Jobs: Early,
			Resumable: true, MaxTries: 1, Left: budget{Late: 1},
			States: 484_117,
		},
		{
			Name: "lost answers and conflicts", Who: []Role{Client, Completer}, Request: []uint8{1, 1}, Phases: call, Jobs: AllJobs,
			Resumable: true, MaxTries: 1, Left: budget{Lost: 1, Late: 1, Conflict: 1, Fail: 1},
			States: 559_290,
		},
		{
			Name: "two retries and a drain that dies", Who: []Role{Client, Client}, Request: []uint8{1, 1}, Phases: call, Jobs: AllJobs,
			MaxTries: 2, Left: budget{Late: 1, Fail: 1, Twice: 1, DrainDies: 1},
			States: 266_317,
		},
		{
			Name: "expiry, and a second request", Who: []Role{Client, Client, Completer}, Request: []uint8{1, 2, 1}, Phases: call, Jobs: AllJobs,
			Resumable: true, MaxTries: 2, Expire: true, Left: budget{Late: 1, Twice: 1},
			States: 770_137,
		},
		{
			Name: "expiry of a request that isn't stored", Who: []Role{Client, Client, Client}, Request: []uint8{1, 1, 2}, Phases: call, Jobs: Early,
			MaxTries: 2, Expire: true, Left: budget{Late: 1},
			States: 388_243,
		},
		{
			Name: "a call first", Who: []Role{Client, Client, Completer}, Request: []uint8{1, 1, 1}, Phases: [2]Phase{Foreign}, Jobs: Late,
			Resumable: true, MaxTries: 2, Expire: true, Left: budget{Late: 1, Fail: 1},
			States: 182_471,
		},
		{
			Name: "a call first, and no completer", Who: []Role{Client, Client}, Request: []uint8{1, 1}, Phases: [2]Phase{Foreign}, Jobs: Late,
			MaxTries: 2, Expire: true, Left: budget{Lost: 1, Late: 1, Fail: 2, Renew: 1},
			States: 97_217,
		},
		{
			Name: "an answer before the call", Who: []Role{Client, Client, Completer}, Request: []uint8{1, 1, 1}, Phases: call, Jobs: Early,
			Resumable: true, MaxTries: 2, Left: budget{Late: 1, Early: 1},
			States: 1_126_743,
		},
		{
			Name: "an answer before the first call", Who: []Role{Client, Client}, Request: []uint8{1, 1}, Phases: [2]Phase{Foreign}, Jobs: Late,
			MaxTries: 2, Expire: true, Left: budget{Lost: 1, Late: 1, Fail: 1, Early: 2},
			States: 54_477,
		},
		{
			Name: "stuck, and two operators", Who: []Role{Client, Completer, Operator, Operator}, Request: []uint8{1, 1, 1, 1}, Phases: call, Jobs: Early,
			Resumable: true, Expire: true, Left: budget{Late: 1, Twice: 1},
			States: 382_225,
		},
		{
			Name: "stuck, an operator, and a retry", Who: []Role{Client, Completer, Operator, Client}, Request: []uint8{1, 1, 1, 1}, Phases: call, Jobs: Early,
			Resumable: true, Left: budget{Late: 1},
			States: 1_725_145,
		},
		{
			Name: "reads before the claim", Who: []Role{Client, ReadFirst, ReadFirst}, Request: []uint8{1, 1, 2}, Phases: call, Jobs: Early,
			MaxTries: 2, Expire: true, Left: budget{Late: 1},
			States: 425_067,
		},
		{
			Name: "reads before the claim of a freed key", Who: []Role{Client, ReadFirst, ReadFirst}, Request: []uint8{1, 1, 2}, Phases: [2]Phase{Atomic},
			MaxTries: 2, Expire: true, Left: budget{Late: 1, Fail: 1},
			States: 99_528,
		},
		{
			Name: "reads before the claim while the scope changes", Who: []Role{Client, ReadFirst, ReadFirst}, Request: []uint8{1, 1, 1}, Program: []Program{First, Second, First},
			Change: OfScope, MaxTries: 2, Expire: true, Left: budget{Late: 1},
			States: 292_952,
		},
		{
			Name: "a lost answer", Who: []Role{Client, Client, Completer}, Request: []uint8{1, 1, 1}, Phases: call, Jobs: Late,
			Resumable: true, MaxTries: 1, Left: budget{Lost: 1},
			States: 33_595,
		},
		{
			Name: "a call that can't be repeated", Who: []Role{Client, Client, Operator}, Request: []uint8{1, 1, 1}, Phases: [2]Phase{Atomic, NotIdempotent}, Jobs: Late,
			MaxTries: 2, Left: budget{Late: 1, Fail: 1},
			States: 71_047,
		},
		{
			Name: "a provider that forgets", Who: []Role{Client, Client, Operator, Client}, Request: []uint8{1, 1, 1, 1}, Phases: [2]Phase{Foreign},
			MaxTries: 2, Forgets: true, EndLeases: true, Left: budget{Fail: 1, Renew: 1},
			States: 822_542,
		},
		{
			Name: "a look-up, and no keys", Who: []Role{Client, Client, Client}, Request: []uint8{1, 1, 1}, Phases: [2]Phase{NotIdempotent},
			LookUp: true, MaxTries: 2, Left: budget{Slow: 2},
			States: 98_977,
		},
		{
			Name: "a look-up, no keys, and a completer", Who: []Role{Client, Client, Completer}, Request: []uint8{1, 1, 1}, Phases: [2]Phase{NotIdempotent},
			LookUp: true, Resumable: true, MaxTries: 1, Left: budget{Late: 1, Slow: 1},
			States: 745_565,
		},
		{
			Name: "a look-up, no keys, and an operator", Who: []Role{Client, Completer, Operator, Client}, Request: []uint8{1, 1, 1, 1}, Phases: [2]Phase{NotIdempotent},
			LookUp: true, Resumable: true, EndLeases: true, Left: budget{Lost: 1, Slow: 1},
			States: 1_073_645,
		},
		{
			Name: "a look-up, and a provider that forgets", Who: []Role{Client, Client, Client}, Request: []uint8{1, 1, 1}, Phases: [2]Phase{Foreign},
			LookUp: true, Forgets: true, MaxTries: 2, Left: budget{Fail: 1, Slow: 2},
			States: 537_764,
		},
		{
			Name: "a look-up, and a call that is never made again", Who: []Role{Client, Client, Operator}, Request: []uint8{1, 1, 1}, Phases: [2]Phase{Foreign},
			LookUp: true, Never: true, MaxTries: 2, Left: budget{Late: 1, Slow: 1},
			States: 61_301,
		},
		{
			Name: "an answer whose body can't be written", Who: []Role{Client, Client, Completer}, Request: []uint8{1, 1, 1}, Phases: call, Jobs: Late,
			Resumable: true, MaxTries: 2, Left: budget{Body: 2},
			States: 10_657,
		},
		{
			Name: "operators forget and end leases", Who: []Role{Client, Operator, Client}, Request: []uint8{1, 1, 2}, Phases: call, Jobs: Early,
			MaxTries: 2, Expire: true, EndLeases: true, Forget: true, Left: budget{Late: 1, Fail: 1},
			States: 192_205,
		},
		{
			Name: "a deploy that changes the scope", Who: []Role{Client, Client, Client}, Request: []uint8{1, 1, 1}, Program: []Program{Former, First, Second},
			Change: OfScope, Phases: call, MaxTries: 2, Expire: true, Left: budget{Late: 1},
			States: 303_360,
		},
		{
			Name: "a change of scope that is rolled back", Who: []Role{Client, Client, Client}, Request: []uint8{1, 1, 1}, Program: []Program{Former, First, Second},
			Change: OfScope, MaxTries: 2, Expire: true, Left: budget{Fail: 1, Back: 1},
			States: 116_636,
		},
		{
			Name: "the end of a change of scope", Who: []Role{Client, Client, Client}, Request: []uint8{1, 1, 1}, Program: []Program{First, Second, Latest},
			Change: OfScope, MaxTries: 2, Expire: true, Left: budget{Fail: 1, Back: 1},
			States: 100_289,
		},
		{
			Name: "a change of scope, and completer", Who: []Role{Client, Client, Completer}, Request: []uint8{1, 1, 1}, Program: []Program{First, Second, First},
			Change: OfScope, Phases: call, Jobs: Early, Resumable: true, MaxTries: 1, Expire: true, Left: budget{Late: 1},
			States: 932_647,
		},
		{
			Name: "a change of scope, and lost answers", Who: []Role{Client, Client, Client}, Request: []uint8{1, 1, 1}, Program: []Program{First, Second, Second},
			Change: OfScope, Phases: [2]Phase{Foreign}, MaxTries: 2, Expire: true, Left: budget{Lost: 1, Late: 1},
			States: 576_358,
		},
		{
			Name: "a deploy that changes the fingerprint", Who: []Role{Client, Client, Client, Client}, Request: []uint8{1, 1, 1, 2},
			Program: []Program{First, Second, Latest, First}, Change: OfFingerprint, Phases: [2]Phase{Atomic}, MaxTries: 2, Expire: true,
			States: 22_329,
		},
	}
}
