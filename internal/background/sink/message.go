package sink

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/trace"
	"github.com/samekey/samekey/lambda"
)

// unsendable escapes the characters that JSON allows and SQS refuses.
var unsendable = strings.NewReplacer("\uFFFE", `\ufffe`, "\uFFFF", `\uffff`)

func text(args json.RawMessage) string { return unsendable.Replace(string(args)) }

// messageSize returns an upper bound for a message's size: the body, and the names, types and
// values of the attributes.
func messageSize(d jobs.Delivery) int {
	const types = 2 * len("String")
	size := len(text(d.Args)) + len(lambda.KeyAttribute) + len(d.JobID) + len(lambda.KindAttribute) + len(d.Kind) + types
	for name, value := range traceAttributes(d.Trace) {
		size += len(name) + len(value) + types/2
	}
	return size
}

// traceAttributes yields the attributes of a job's trace context: none, one or two.
func traceAttributes(c trace.Context) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if c.Parent != "" && yield(trace.ParentHeader, c.Parent) && c.State != "" {
			yield(trace.StateHeader, c.State)
		}
	}
}

// message is a job as a message of SQS or SNS.
type message struct {
	entry, body, jobID, kind *string
	dedup, group             *string // nil: none
	trace                    trace.Context
}

// newMessageBatcher returns the batcher of a [Queue] or [Topic]. The batcher turns the
// jobs of a call into messages, and passes them to the function send. For a FIFO queue
// or topic, the batcher keeps the order of each group. For a standard queue or topic,
// the unit that fairBy returns for a job becomes the message's group (fair queues).
func newMessageBatcher(of service, fifo bool, fairBy func(jobs.Delivery) string, send func(context.Context, []message) (results, error)) batcher {
	return batcher{service: of, ordered: fifo, size: messageSize, call: func(ctx context.Context, batch []jobs.Delivery) (results, error) {
		all := make([]message, len(batch))
		for i, d := range batch {
			all[i] = messageOf(i, d, fifo, fairBy)
		}
		return send(ctx, all)
	}}
}

// messageOf makes the message for the job d. entry is the message's number in the call.
func messageOf(entry int, d jobs.Delivery, fifo bool, fairBy func(jobs.Delivery) string) message {
	m := message{entry: aws.String(strconv.Itoa(entry)), body: aws.String(text(d.Args)), jobID: &d.JobID, kind: &d.Kind, trace: d.Trace}
	if fifo {
		m.dedup, m.group = &d.JobID, aws.String(group(d.Group))
	} else if fairBy != nil {
		if tenant := fairBy(d); tenant != "" {
			m.group = aws.String(group(tenant))
		}
	}
	return m
}

// attributes returns a message's attributes in the service's type V.
func attributes[V any](m message, text func(dataType, value *string) V) map[string]V {
	kind := aws.String("String")
	all := map[string]V{lambda.KeyAttribute: text(kind, m.jobID), lambda.KindAttribute: text(kind, m.kind)}
	for name, value := range traceAttributes(m.trace) {
		all[name] = text(kind, &value)
	}
	return all
}

// group turns a job's group or unit, g, into a message group id. It returns g if the service
// accepts g as an id, otherwise a hash of g.
func group(g string) string {
	const limit = 128
	bad := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(g) <= limit && !strings.ContainsFunc(g, bad) {
		return g
	}
	sum := sha256.Sum256([]byte(g))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
