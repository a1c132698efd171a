package sink

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// set is what became of the entry with an id, which is its number.
func (r results) set(id *string, f *fault) {
	if id == nil {
		return
	}
	if i, e := strconv.Atoi(*id); e == nil && i >= 0 && i < len(r) {
		r[i] = f
	}
}

// unsendable are the characters in JSON that SQS takes in no form but escaped.
var unsendable = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

func text(args json.RawMessage) string { return unsendable.Replace(string(args)) }

// messageSize is an upper bound of what a message counts: its body, and the
// names, types and values of its attributes.
func messageSize(d idem.Delivery) int {
	const types = 2 * len("String")
	return len(text(d.Args)) + len(lambda.KeyAttribute) + len(d.JobID) + len(lambda.KindAttribute) + len(d.Kind) + types
}

// address is the deduplication id of a message, and its group: for order in a FIFO
// queue or topic, else for a fair share.
func address(d idem.Delivery, fifo bool, fairBy func(idem.Delivery) string) (dedup, of *string) {
	if fifo {
		return &d.JobID, aws.String(group(d.Group))
	}
	if fairBy != nil {
		if tenant := fairBy(d); tenant != "" {
			return nil, aws.String(group(tenant))
		}
	}
	return nil, nil
}

// group is a message group id for a job's group: itself, if the service takes it.
func group(g string) string {
	const limit = 128
	bad := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(g) <= limit && !strings.ContainsFunc(g, bad) {
		return g
	}
	sum := sha256.Sum256([]byte(g))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
