// Package storedheaders lists the response headers that a record stores.
package storedheaders

// Header is a response header that a record stores and a replay repeats.
type Header struct {
	Name string
	// Content says that the header describes the answer's content or location. samekey
	// check reports a replay in which such a header has changed. Gateways and caches may
	// rewrite other headers.
	Content bool
}

// All returns the response headers that a record stores. Other headers may contain a
// secret, or are set by the gateway for each answer.
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
