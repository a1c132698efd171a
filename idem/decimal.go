package idem

import (
	"bytes"
	"strconv"
	"strings"
)

// appendDecimal appends the single spelling of a JSON number: its digits without zeros at
// either end, and a power of ten. Zero has no sign.
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

// appendSum appends an integer of any length, plus n.
func appendSum(b []byte, integer string, n int) []byte {
	negative := strings.HasPrefix(integer, "-")
	integer = strings.TrimLeft(strings.TrimLeft(integer, "+-"), "0")
	const short = 17 // digits whose sum with a body's length is an int64
	if len(integer) <= short {
		i, _ := strconv.ParseInt("0"+integer, 10, 64) // digits only
		if negative {
			i = -i
		}
		return strconv.AppendInt(b, i+int64(n), 10)
	}
	// n is smaller than the integer, so that the sum has the integer's sign.
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
