// Package storedheaders has the response headers that a record keeps, for all who ask.
package storedheaders

// Header is a response header that a record keeps: a replay has it.
type Header struct {
	Name string
	// Content says that it tells the answer's content or place, so samekey check wants
	// it in a replay as it was. Gateways and caches may write the others anew.
	Content bool
}

// All returns the response headers that a record keeps. The gateway makes all others
// anew, or they may hold a secret.
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
