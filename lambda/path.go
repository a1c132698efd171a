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

// splitQuery takes a query apart and leaves names and values as the client
// encoded them. Values of one name keep their order.
func splitQuery(raw string) url.Values {
	values := make(url.Values)
	for pair := range strings.SplitSeq(raw, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			values.Add(name, value)
		}
	}
	return values
}

// decodedQuery takes a query apart and decodes it, but for what is no escape.
func decodedQuery(raw string) url.Values {
	values := make(url.Values)
	for pair := range strings.SplitSeq(raw, "&") {
		if name, value, _ := strings.Cut(pair, "="); pair != "" {
			values.Add(unescaped(name), unescaped(value))
		}
	}
	return values
}

func unescaped(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// joinedParameters is a decoded query with one value for each name, several of
// them joined by commas, as payload format 2.0 has it.
func joinedParameters(raw string) map[string]string {
	if raw == "" {
		return nil
	}
	single := make(map[string]string)
	for name, values := range decodedQuery(raw) {
		single[name] = strings.Join(values, ",")
	}
	return single
}
