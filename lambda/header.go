package lambda

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// header makes one of an event's two maps, with canonical names. Where a name
// is in both, multi has all values and single the last of them. Spellings of
// one name are put together, in a fixed order.
func header(single map[string]string, multi map[string][]string) http.Header {
	h := make(http.Header, max(len(single), len(multi)))
	for _, name := range slices.Sorted(maps.Keys(single)) {
		h.Add(name, single[name])
	}
	all := make(http.Header, len(multi))
	for _, name := range slices.Sorted(maps.Keys(multi)) {
		for _, value := range multi[name] {
			all.Add(name, value)
		}
	}
	maps.Copy(h, all)
	return h
}

// joined is h with one value for each name: several are a list with commas,
// which is the same thing (RFC 9110, 5.3), but for cookies.
func joined(h http.Header) map[string]string {
	single := make(map[string]string, len(h))
	for name, values := range h {
		switch {
		case len(values) == 0:
		case name == setCookie:
			single[name] = values[len(values)-1]
		default:
			single[name] = strings.Join(values, ", ")
		}
	}
	return single
}

const setCookie = "Set-Cookie"

// withCookies puts the cookies of a request back into the header they were
// taken from.
func withCookies(h http.Header, cookies []string) http.Header {
	if len(cookies) > 0 {
		h["Cookie"] = []string{strings.Join(cookies, "; ")}
	}
	return h
}

// withSetCookies adds a response's cookies to h.
func withSetCookies(h http.Header, cookies []string) http.Header {
	if len(cookies) > 0 {
		h[setCookie] = append(h[setCookie], cookies...)
	}
	return h
}

// withoutSetCookies is the reverse of withSetCookies. h is not changed.
func withoutSetCookies(h http.Header) (rest http.Header, cookies []string) {
	cookies = h[setCookie]
	if cookies == nil {
		return h, nil
	}
	rest = maps.Clone(h)
	delete(rest, setCookie)
	return rest, cookies
}

// v2Headers has the headers of a request in the form of payload format 2.0:
// lower-case names, values joined by commas.
func v2Headers(h http.Header) map[string]string {
	headers := make(map[string]string, len(h))
	for name, values := range h {
		headers[strings.ToLower(name)] = strings.Join(values, ",")
	}
	return headers
}
