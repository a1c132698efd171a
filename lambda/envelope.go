package lambda

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/samekey/samekey/idem"
)

// The envelope by which a completer asks a function to bring an operation to an
// end, and the function's answer:
//
//	{"samekey":{"resume":{"pk":"v1#…","owner":"…","ver":3}}}   and "released":true, where it was
//	{"samekey":{"outcome":"in_flight","retry_after_ms":1500}}
//
// It names a record and holds nothing of the request: whoever may invoke the
// function can't make up who asks for what. No event source produces it, since
// what a client sends is never an event's only top-level member.
const envelopeMember = "samekey"

// maxEnvelope is more than any ticket needs.
const maxEnvelope = 4 << 10

// EncodeResume is the payload that asks a function to resume t.
func EncodeResume(t idem.Ticket) []byte {
	return envelope("resume", t)
}

// ParseResume reads what [EncodeResume] made. ok is false for any other payload,
// which then is an event for the handler; an error says that a payload is meant
// to be an envelope, having nothing but its member, and can't be read. It takes
// the members in any order, but each of them once, and no other.
func ParseResume(payload []byte) (t idem.Ticket, ok bool, err error) {
	inner, ok, err := open(payload)
	if !ok || err != nil {
		return t, false, err
	}
	resume, err := members(inner, "resume")
	if err != nil {
		return t, false, err
	}
	m, err := members(resume["resume"], "pk", "owner", "ver", "released?")
	if err != nil {
		return t, false, err
	}
	err = errors.Join(json.Unmarshal(m["pk"], &t.PK), json.Unmarshal(m["owner"], &t.Owner), json.Unmarshal(m["ver"], &t.Ver))
	if released, there := m["released"]; there {
		err = errors.Join(err, json.Unmarshal(released, &t.Released))
	}
	if err != nil {
		return idem.Ticket{}, false, badEnvelope(err.Error())
	}
	if t.PK == "" || t.Owner == "" || t.Ver < 1 {
		return idem.Ticket{}, false, badEnvelope("the ticket is not complete")
	}
	return t, true, nil
}

// envelope wraps v, under name if that isn't empty.
func envelope(name string, v any) []byte {
	if name != "" {
		v = map[string]any{name: v}
	}
	b, err := encode(map[string]any{envelopeMember: v})
	if err != nil {
		panic(err) //nolint:forbidigo // strings and numbers only
	}
	return b
}

// open returns what an envelope holds. ok is false for what is none.
func open(payload []byte) (inner json.RawMessage, ok bool, err error) {
	if len(payload) > maxEnvelope || !bytes.Contains(payload, []byte(`"`+envelopeMember+`"`)) {
		return nil, false, nil // the usual case, for one pass over the payload
	}
	var all map[string]json.RawMessage // unlike a struct, it knows large from small letters
	if err := json.Unmarshal(payload, &all); err != nil || len(all) != 1 || all[envelopeMember] == nil {
		return nil, false, nil //nolint:nilerr // what isn't JSON is the handler's to refuse
	}
	m, err := members(payload, envelopeMember)
	return m[envelopeMember], err == nil, err
}

// members reads an object that has exactly these members, each of them once. One
// whose name ends in "?" may be missing.
func members(raw json.RawMessage, names ...string) (map[string]json.RawMessage, error) {
	m, err := object(raw)
	if err != nil {
		return nil, badEnvelope(err.Error())
	}
	known := 0
	for _, name := range names {
		name, optional := strings.CutSuffix(name, "?")
		_, there := m[name]
		switch {
		case there:
			known++
		case !optional:
			return nil, badEnvelope(name + " is missing")
		}
	}
	if len(m) != known {
		return nil, badEnvelope("a member too many")
	}
	return m, nil
}

// object reads an object whose members are there once each. Unlike a struct, it knows
// large from small letters.
func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("want an object")
	}
	m := make(map[string]json.RawMessage)
	for dec.More() {
		t, err := dec.Token()
		name, _ := t.(string)
		var v json.RawMessage
		if err == nil {
			err = dec.Decode(&v)
		}
		if err != nil {
			return nil, err
		}
		if _, twice := m[name]; twice {
			return nil, fmt.Errorf("%.40q twice", name)
		}
		m[name] = v
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("the object has no end")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return m, nil
}

// given reports whether a member is there and isn't null.
func given(v json.RawMessage) bool { return v != nil && string(v) != "null" }

func badEnvelope(why string) error { return fmt.Errorf("lambda: not a sound envelope: %s", why) }
