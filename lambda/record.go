package lambda

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// origin is where a record says it comes from.
type origin struct{ service, id, arn string }

// checkOrigins holds each of n records to its source. A function that is wired
// to another one, or a record that couldn't be reported, must not go through in
// silence.
func checkOrigins(want, service string, n int, of func(i int) origin) error {
	if n == 0 {
		return notA(want, "it has no records")
	}
	for i := range n {
		switch o := of(i); {
		case o.service != service:
			return notA(want, fmt.Sprintf("record %d is of %.40q", i, o.service))
		case o.id == "":
			return notA(want, fmt.Sprintf("record %d has no id", i))
		case o.arn == "":
			return notA(want, fmt.Sprintf("record %d doesn't name its source", i))
		}
	}
	return nil
}

// consumerScope is the scope of records that several functions may get, such as
// those of a topic: what one of them has done, another one has not.
func consumerScope(ctx context.Context, source string) string {
	if functionARN(ctx) == "" {
		return source // in a test
	}
	return join(source, functionScope(ctx))
}

// functionARN names the function that is invoked, without its version: a
// deployment goes on with the work of the one before. An alias stays, since it
// may be a stage. It is empty outside of Lambda.
func functionARN(ctx context.Context) string {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return ""
	}
	const qualifier = 7 // arn:aws:lambda:REGION:ACCOUNT:function:NAME:QUALIFIER
	parts := strings.Split(lc.InvokedFunctionArn, ":")
	if len(parts) > qualifier && (parts[qualifier] == "$LATEST" || strings.Trim(parts[qualifier], "0123456789") == "") {
		parts = parts[:qualifier]
	}
	return strings.Join(parts, ":")
}

// resourceName is the last part of an ARN, for people.
func resourceName(arn string) string {
	return arn[strings.LastIndexAny(arn, ":/")+1:]
}

// digestKey makes a key of parts that may be long or hold any characters.
func digestKey(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// jsonHeader says that a body may be JSON, for engines that compare that by its
// meaning ([idem.Fingerprint.CanonicalJSON]). One that isn't counts by its bytes.
func jsonHeader() http.Header { return http.Header{"Content-Type": {"application/json"}} }
