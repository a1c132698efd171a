package idem

import "fmt"

// Mode decides what an engine does with requests. Records are the same in all modes,
// so a deployment can change the mode at any time.
type Mode int

const (
	// ModeEnforce protects each request. While the store can't be reached, requests are
	// refused with 503.
	ModeEnforce Mode = iota
	// ModeObserve runs each request and refuses none, not even a request without a key
	// or caller. The engine stores records. If ModeEnforce would not run a request, the
	// engine reports to [Hooks].Observed and to the log which outcome the request would
	// have had under ModeEnforce. The engine also reports each request without a key
	// ([ErrKeyMissing]), even if [Options].Key would let ModeEnforce run the request. But
	// if the handler begins a phase, the phase and the request are refused
	// ([ErrUnprotected]). Use ModeObserve as the first stage of a retrofit.
	ModeObserve
	// ModeOpen works like ModeEnforce while the store can be reached. While the store
	// can't be reached, ModeOpen runs the handler without protection instead of
	// answering 503, so a retry may run the handler again. ModeOpen still refuses a
	// request if the store answers with a refusal (access denied, no such table).
	// ModeOpen also refuses a request if its record may hold an answer. That is so if the
	// store has returned a record, or if the store can't get the key that decrypts it.
	ModeOpen
	// ModeOff runs each handler without protection and never calls the store, which may
	// then be nil. What needs a record is refused ([ErrUnprotected]): [Engine.Status],
	// [Engine.Resume], [Engine.MarkStuck], and the decisions of operators, such as
	// [Engine.Settle]. A client that polls the status resource gets a 503 with
	// Retry-After, so it polls on.
	ModeOff
)

func (m Mode) String() string {
	if names := []string{"ModeEnforce", "ModeObserve", "ModeOpen", "ModeOff"}; m >= 0 && int(m) < len(names) {
		return names[m]
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// KeyMode decides how to treat a request without a key.
type KeyMode int

const (
	// KeyRequired refuses the request with 400; nothing is stored.
	KeyRequired KeyMode = iota
	// KeyOptional runs a request without a key every time; nothing is stored.
	KeyOptional
	// KeyGenerate makes a key for the request and logs a warning. Over HTTP the answer
	// echoes the key. If the source delivers a request again ([Request.Redelivered]),
	// KeyGenerate refuses the request, because each delivery would get a different key.
	// Inside an operation KeyGenerate makes no key, because the request is part of that
	// operation.
	KeyGenerate
)

// InFlightMode decides how to answer a request while another attempt holds its
// key.
type InFlightMode int

const (
	// InFlightRefuse answers 409 at once. Retry-After is the rest of the lease, at
	// most five seconds.
	InFlightRefuse InFlightMode = iota
	// InFlightWait waits for the other attempt's answer and replays it. After ten
	// seconds, or earlier if this request's own time runs out, the client gets 409. If
	// the other attempt ends without an answer, this request goes on as a retry does:
	// usually it runs the handler.
	InFlightWait
	// InFlightAccept answers 202 with the Location of a status resource
	// ([Options.StatusURL]). Once the other attempt is done, the status resource returns
	// that attempt's answer.
	InFlightAccept
)
