package idem

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"

	"github.com/samekey/samekey/idem/store"
)

// Every hash and every random name of the engine. The parts of a hash are told apart by
// their lengths, so that no two lists of parts have the same bytes.

// appendPart appends a part after its length.
func appendPart[T string | []byte](buf []byte, part T) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(len(part)))
	return append(buf, part...)
}

// appendTagged appends a part that may be left out: the tag says which one it is.
func appendTagged(b []byte, tag byte, part string) []byte {
	return appendPart(append(b, tag), part)
}

// digestOf hashes small and then body, which is not copied: it may have megabytes.
func digestOf(small, body []byte) (sum [sha256.Size]byte) {
	if len(body) <= cap(small)-len(small) {
		return sha256.Sum256(append(small, body...))
	}
	h := sha256.New()
	h.Write(small)
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// keyed hashes a digest once more, with a secret key.
func keyed(key []byte, digest [sha256.Size]byte) (sum [sha256.Size]byte) {
	mac := hmac.New(sha256.New, key)
	mac.Write(digest[:])
	mac.Sum(sum[:0])
	return sum
}

// partitionKey appends the key of r's record: a prefix, and the hash of its parts. The
// key has a fixed length, is evenly distributed and hides the client's key. Length
// prefixes keep a key from reaching into another scope.
func (n *naming) partitionKey(b, text []byte, r *Request, by *scoping) []byte {
	buf := appendPart(make([]byte, 0, 256), text)
	buf = appendPart(buf, r.Key)
	switch {
	case by.path && r.Path != "":
		buf = appendPart(buf, r.Method+" "+patternHost(r)+r.Path)
	case by.path: // not HTTP: the route that the source gives it
		buf = appendPart(buf, r.Route)
	}
	sum := sha256.Sum256(buf)
	return base64.RawURLEncoding.AppendEncode(append(b, n.prefix...), sum[:])
}

// sentHash hashes the data that a call of an operation sends.
func sentHash(operation string, raw []byte) string {
	sum := sha256.Sum256(append([]byte(operation), raw...))
	return hex.EncodeToString(sum[:16])
}

// bodyHash returns the hash of the body in a finished record, wherever the body is.
func bodyHash(r *store.Record) [sha256.Size]byte {
	if r.Overflow != nil {
		return r.Overflow.SHA256
	}
	return sha256.Sum256(r.Response.Body)
}

// nonceSize is the length of a text of rand.Text, which has at least 128 random bits.
const nonceSize = 26

// drawNonces fills b with texts like those of rand.Text, in one draw.
func drawNonces(b []byte) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	_, _ = rand.Read(b) // never fails
	for i, r := range b {
		b[i] = alphabet[int(r)%len(alphabet)]
	}
}
