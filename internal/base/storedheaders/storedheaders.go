// Package storedheaders has the response headers that a record keeps.
package storedheaders

// Header is a response header that a record keeps and a replay repeats.
type Header struct {
	Name string
	// Content says that the header describes the answer's content or place, so samekey
	// check demands it in a replay unchanged. Gateways and caches may rewrite other
	// headers.
	Content bool
}

// All returns the response headers that a record keeps. Other headers may hold a secret, or
// the gateway makes them anew.
func All() []Header {
	return []Header{
		{"Access-Control-Allow-Credentials", false}, // a browser needs these three to read the replay
		{"Access-Control-Allow-Origin", false},
		{"Access-Control-Expose-Headers", false},
		{"Cache-Control", false},
		{"Content-Disposition", true},
		{"Content-Encoding", true},
		{"Content-Language", true},
		{"Content-Type", true},
		{"Etag", true},
		{"Last-Modified", true},
		{"Link", true},
		{"Location", true},
		{"Vary", false},
	}
}
