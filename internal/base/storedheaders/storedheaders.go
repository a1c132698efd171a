// Package storedheaders lists the response headers that a record stores.
package storedheaders

// Header is a response header that a record stores and a replay repeats.
type Header struct {
	Name string
	// Content says that the header describes the answer's content or location. If such a
	// header has changed in a replay, the command "samekey check" reports it. The command
	// ignores changes in the other headers, since gateways and caches may rewrite these.
	Content bool
}

// All returns the response headers that a record stores. Other headers are not
// stored: they may contain a secret, or the gateway sets them for each answer.
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
