package sink

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

// results are what became of the entries of a call, by their numbers.
type results []error

// missing are results of n entries none of which has been told of yet.
func missing(service string, n int) results {
	errs := make(results, n)
	for i := range errs {
		errs[i] = down(service, errors.New("the answer doesn't tell"))
	}
	return errs
}

func (r results) set(id *string, err error) {
	if id == nil {
		return
	}
	if i, e := strconv.Atoi(*id); e == nil && i >= 0 && i < len(r) {
		r[i] = err
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
