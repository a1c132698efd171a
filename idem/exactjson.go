package idem

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// exactJSON returns the canonical form of a body. Two bodies have the same form if and
// only if their JSON values are equal. White space, escapes and the order of members
// make no difference. Names, strings and the order of array elements make a difference.
// null differs from an absent member. Numbers are compared by their exact value: 1.0
// equals 1, and 2^53+1 differs from 2^53.
//
// exactJSON returns an error for a body that isn't exactly one JSON value, has invalid
// UTF-8 or half of a surrogate pair, has more than 200 levels, or is larger than 1 MiB.
// It also returns an error if an object has two members whose names are equal or differ
// only in case. The error gives the reason, and may be shown to clients.
//
// The time of exactJSON is proportional to the body's size. Huge exponents don't
// matter, because the form has exponents, too.
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

// halfSurrogate reports whether a string in valid JSON has half of a surrogate pair.
// Decoders replace every such half by the same character, which would make different
// strings equal.
func halfSurrogate(body []byte) bool {
	high := false // the previous escape was the first half of a pair
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
		unit, _ := strconv.ParseUint(string(body[i+1:i+5]), 16, 0) // four digits, since the JSON is valid
		i += 4
		low := unit >= 0xdc00 && unit <= 0xdfff
		if low != high {
			return true
		}
		high = unit >= 0xd800 && unit <= 0xdbff
	}
	return high
}

// appendDecimal appends a JSON number in a form that is the same for equal numbers: its
// digits without zeros at either end, and a power of ten. Zero has no sign.
func appendDecimal(b []byte, number string) []byte {
	number, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := number, "0"
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, exponent = number[:i], number[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return append(b, '0')
	}
	if negative {
		b = append(b, '-')
	}
	b = append(append(b, significant...), 'e')
	return appendSum(b, exponent, len(digits)-len(significant)-len(fraction))
}

// appendSum appends the sum of n and the parameter integer. The integer may have too
// many digits for an int64.
func appendSum(b []byte, integer string, n int) []byte {
	negative := strings.HasPrefix(integer, "-")
	integer = strings.TrimLeft(strings.TrimLeft(integer, "+-"), "0")
	const short = 17 // the sum of a 17-digit number and a body's length fits into an int64
	if len(integer) <= short {
		i, _ := strconv.ParseInt("0"+integer, 10, 64) // digits only
		if negative {
			i = -i
		}
		return strconv.AppendInt(b, i+int64(n), 10)
	}
	// The absolute value of integer is larger than that of n, so the sum has the sign of
	// integer.
	if negative {
		b, n = append(b, '-'), -n
	}
	sum, carry := []byte(integer), n
	for i := len(sum) - 1; i >= 0; i-- {
		carry += int(sum[i] - '0')
		digit := carry % 10
		if digit < 0 {
			digit += 10
		}
		sum[i], carry = '0'+byte(digit), (carry-digit)/10
	}
	if carry > 0 { // one
		return append(append(b, '1'), sum...)
	}
	return append(b, bytes.TrimLeft(sum, "0")...)
}
