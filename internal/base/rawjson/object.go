// Package rawjson reads JSON more strictly than encoding/json: member names are
// compared as written, and a duplicate member is an error. If two programs read the
// same key or ticket differently, they would run two operations.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Object reads a JSON object. Duplicate members, and data after the object, are errors.
func Object(raw []byte) (map[string]json.RawMessage, error) {
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

// Given reports whether a member exists and isn't null.
func Given(v json.RawMessage) bool { return v != nil && string(v) != "null" }
