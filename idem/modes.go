package idem

// KeyMode decides how to treat a request without a key.
type KeyMode int

const (
	// KeyRequired refuses the request with 400; nothing is stored.
	KeyRequired KeyMode = iota
	// KeyOptional runs the request every time; nothing is stored.
	KeyOptional
	// KeyGenerate makes a key, logs a warning and continues; over HTTP the answer
	// echoes the key. KeyGenerate refuses a request that its source repeats
	// ([Request.Redelivered]), which would get a different key each time. Inside an
	// operation KeyGenerate makes no key: a request without its own key is part of
	// that operation.
	KeyGenerate
	// KeyObserve runs every request, with or without a key, and only reports the
	// outcome that the request would have had ([Hooks.Observed]): the first stage of
	// a retrofit. KeyObserve is not for handlers with phases, which need a record.
	KeyObserve
)

// InFlightMode decides how to answer a request while another attempt holds its
// key.
type InFlightMode int

const (
	// InFlightRefuse answers 409 at once. Retry-After is the rest of the lease, at
	// most [Options.MaxRetryAfter].
	InFlightRefuse InFlightMode = iota
	// InFlightWait waits for the other attempt's answer and replays it. If that
	// takes longer than [Options.WaitMax] or the time of this request, the answer is
	// 409. If the other attempt fails, this attempt runs.
	InFlightWait
	// InFlightAccept answers 202 with the Location of a status resource
	// ([Options.StatusURL]), which finally returns the answer.
	InFlightAccept
)
