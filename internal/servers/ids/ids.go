// Package ids defines the account and the Region of local resources, and makes random
// ids that look like AWS's.
package ids

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"time"
)

// The account and the Region in the ARNs of functions, queues and APIs, unless a
// configuration sets others.
const (
	AccountID = "123456789012"
	Region    = "us-east-1"
)

// UUID returns a random UUID, the form of a Lambda request id.
func UUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Trace returns a value for the X-Ray header of a request that isn't traced.
func Trace() string {
	return fmt.Sprintf("Root=1-%08x-%s", time.Now().Unix(), randomHex(12))
}

// Gateway returns an id in the form of an HTTP API's request ids: 15 characters
// and an equals sign.
func Gateway() string {
	var b [11]byte
	_, _ = rand.Read(b[:])
	return base64.URLEncoding.EncodeToString(b[:])
}

// LogStream returns a name for the log stream of a process.
func LogStream() string {
	return time.Now().UTC().Format("2006/01/02") + "/[$LATEST]" + randomHex(16)
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
