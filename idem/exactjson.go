package idem

import (
	"encoding/json"
	"strconv"
)

// exactJSON returns the form of a body in which two bodies are equal exactly if their JSON
// values are: the order of members, white space and escapes don't count; names, texts and
// the order of arrays do; null is not absent; numbers are equal by their exact value, so
// that 1.0 is 1 and 2^53+1 is not 2^53. A body without such a form is an error that may be
// shown: repeated members (in any case), more or less than one value, invalid UTF-8, half of a surrogate
// pair, more than 200 levels or 1 MiB.
//
// The time is proportional to the body's size, whatever its numbers are: no number is
// expanded.
func exactJSON(body []byte) ([]byte, error) {
	switch {
	case len(body) > maxForm:
		return nil, errTooLong
	case !json.Valid(body):
		return nil, errNotCanonical
	case halfSurrogate(body):
		return nil, errSurrogate
	}
	return formOf(body, true)
}

// halfSurrogate reports whether a text of a valid JSON value has a surrogate that is no half
// of a pair. Decoders put the same character in place of all of them.
func halfSurrogate(body []byte) bool {
	high := false // the escape just before was the first half of a pair
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			if high {
				return true
			}
			continue
		}
		i++
		if body[i] != 'u' {
			if high {
				return true
			}
			continue
		}
		unit, _ := strconv.ParseUint(string(body[i+1:i+5]), 16, 0) // valid JSON has four digits
		i += 4
		low := unit >= 0xdc00 && unit <= 0xdfff
		if low != high {
			return true
		}
		high = unit >= 0xd800 && unit <= 0xdbff
	}
	return high
}
