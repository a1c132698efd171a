// Package envelope has the message by which a completer asks a function to complete
// an operation, and the function's answer:
//
//	{"samekey":{"resume":{"pk":"v1#…","owner":"…","ver":3}}}
//	{"samekey":{"outcome":"in_flight","retry_after_ms":1500}}
//
// A ticket also has "released":true if the last attempt released the record.
//
// An envelope only names a record. So a principal who may invoke the function can't
// choose the caller or the request. No event of an event source looks like an envelope,
// because clients don't choose the names of an event's top-level members.
package envelope

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/rawjson"
)

const (
	member = "samekey"
	// limit is the maximum size of an envelope, in bytes.
	limit = 4 << 10
)

// EncodeTicket returns the payload that asks a function to complete t's operation.
func EncodeTicket(t jobs.Ticket) []byte {
	return encode(map[string]any{"resume": t})
}

// ParseTicket reads a payload of [EncodeTicket]. A malformed envelope is an error. If
// the payload isn't an envelope, there is no error, and ok is false: the payload is an
// event for the handler. The members may be in any order. Duplicate and unknown members
// are errors.
func ParseTicket(payload []byte) (t jobs.Ticket, ok bool, err error) {
	content, ok, err := open(payload)
	if !ok || err != nil {
		return jobs.Ticket{}, false, err
	}
	t, err = ticket(content)
	return t, err == nil, err
}

func ticket(content json.RawMessage) (jobs.Ticket, error) {
	resume, err := members(content, "resume")
	if err != nil {
		return jobs.Ticket{}, err
	}
	m, err := members(resume["resume"], "pk", "owner", "ver", "released?")
	if err != nil {
		return jobs.Ticket{}, err
	}
	var t jobs.Ticket
	err = errors.Join(json.Unmarshal(m["pk"], &t.PK), json.Unmarshal(m["owner"], &t.Owner), json.Unmarshal(m["ver"], &t.Ver))
	if released, there := m["released"]; there {
		err = errors.Join(err, json.Unmarshal(released, &t.Released))
	}
	if err != nil {
		return jobs.Ticket{}, unsound(err.Error())
	}
	if t.PK == "" || t.Owner == "" || t.Ver < 1 {
		return jobs.Ticket{}, unsound("the ticket is not complete")
	}
	return t, nil
}

func encode(v any) []byte {
	b, err := json.Marshal(map[string]any{member: v})
	if err != nil {
		panic(err) //nolint:forbidigo // strings and numbers only
	}
	return b
}

// open returns the content of an envelope. If the payload isn't an envelope, ok is
// false.
func open(payload []byte) (content json.RawMessage, ok bool, err error) {
	if len(payload) > limit || !bytes.Contains(payload, []byte(`"`+member+`"`)) {
		return nil, false, nil // the usual case; it costs one pass over the payload
	}
	var all map[string]json.RawMessage // unlike a struct, a map distinguishes upper and lower case
	if err := json.Unmarshal(payload, &all); err != nil || len(all) != 1 || all[member] == nil {
		return nil, false, nil //nolint:nilerr // the handler refuses a payload that isn't JSON
	}
	m, err := members(payload, member)
	return m[member], err == nil, err
}

// members reads an object with exactly the named members, each once. A member whose
// name ends in "?" may be missing.
func members(raw json.RawMessage, names ...string) (map[string]json.RawMessage, error) {
	m, err := rawjson.Object(raw)
	if err != nil {
		return nil, unsound(err.Error())
	}
	known := 0
	for _, name := range names {
		name, optional := strings.CutSuffix(name, "?")
		_, there := m[name]
		switch {
		case there:
			known++
		case !optional:
			return nil, unsound(name + " is missing")
		}
	}
	if len(m) != known {
		return nil, unsound("a member too many")
	}
	return m, nil
}

func unsound(why string) error { return fmt.Errorf("lambda: not a sound envelope: %s", why) }
