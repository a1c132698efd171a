package lambda

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// canonicalPath gives a path one spelling, since HTTP APIs decode it and others
// leave it as the client wrote it: every segment is decoded, if it can be, and
// encoded again.
func canonicalPath(path string) string {
	if path == "" {
		return "/"
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if u, err := url.PathUnescape(s); err == nil {
			s = u
		}
		segments[i] = url.PathEscape(s)
	}
	return strings.Join(segments, "/")
}

// encodedQuery encodes parameters that come decoded. multi, if there, has all.
func encodedQuery(single map[string]string, multi map[string][]string) string {
	return url.Values(parameters(single, multi)).Encode()
}

// rawQuery joins parameters that come as the client encoded them. A map has no
// order, so the names are sorted; the engine compares queries that way.
func rawQuery(single map[string]string, multi map[string][]string) string {
	var b strings.Builder
	params := parameters(single, multi)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		for _, value := range params[name] {
			if b.Len() > 0 {
				b.WriteByte('&')
			}
			b.WriteString(name + "=" + value)
		}
	}
	return b.String()
}

func parameters(single map[string]string, multi map[string][]string) map[string][]string {
	if len(multi) > 0 || len(single) == 0 {
		return multi
	}
	params := make(map[string][]string, len(single))
	for name, value := range single {
		params[name] = []string{value}
	}
	return params
}
