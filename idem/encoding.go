package idem

import (
	"fmt"
	"strconv"
	"strings"
)

// checkEncoding returns an error if the replay resp has a content coding that r doesn't
// accept. The handler chose the coding for the first request, which may have accepted
// other codings than r. A request without Accept-Encoding counts as accepting no coding:
// RFC 9110 allows any coding in this case, but servers usually use none.
func checkEncoding(r *Request, resp *Response) error {
	for coding := range strings.SplitSeq(strings.ToLower(strings.Join(resp.Header["Content-Encoding"], ",")), ",") {
		coding = strings.TrimPrefix(strings.TrimSpace(coding), "x-") // x-gzip is gzip
		if coding != "" && coding != "identity" && !accepts(headerValues(r.Header, "Accept-Encoding"), coding) {
			return fmt.Errorf("%w: %.20q", ErrEncoding, coding)
		}
	}
	return nil
}

// accepts(values, coding) reports whether the values of Accept-Encoding allow a coding.
func accepts(values []string, coding string) bool {
	all := false
	for item := range strings.SplitSeq(strings.ToLower(strings.Join(values, ",")), ",") {
		name, params, _ := strings.Cut(item, ";")
		name = strings.TrimPrefix(strings.TrimSpace(name), "x-")
		weight, weighed := strings.CutPrefix(strings.TrimSpace(params), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		some := !weighed || err == nil && q > 0
		if name == coding {
			return some
		}
		all = all || name == "*" && some
	}
	return all
}
