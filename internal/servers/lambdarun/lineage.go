package lambdarun

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/samekey/samekey/internal/servers/ids"
)

// MaxLineage is how often a function may be invoked in one chain of requests. Lambda
// refuses a further invocation, because it takes the chain for a loop.
const MaxLineage = 16

// ErrRecursive matches the error of an invocation that was refused because its chain of
// requests had invoked the function [MaxLineage] times. The function did not run.
var ErrRecursive = errors.New("the function is in a recursive loop")

type traceKey struct{}

// Traced returns a context for invocations that belong to a chain of requests. The
// parameter header is the chain's trace header. A function's SDK sends this header with
// each request. A queue stores the header in a message's AWSTraceHeader.
func Traced(ctx context.Context, header string) context.Context {
	return context.WithValue(ctx, traceKey{}, header)
}

// Lineage returns how often the named function was invoked in a chain of requests. The
// parameter header is the chain's trace header, which contains the count.
func Lineage(header, function string) int {
	n, _, _ := lineage(header, function)
	return n
}

const lineageMember = "Lineage="

// lineage splits a trace header. The header's member Lineage has an entry for each
// function. The result n is the count in the function's own entry, and others are the
// other entries. The result members are the header's other members.
func lineage(header, function string) (n int, members, others []string) {
	mine := lineageID(function)
	for member := range strings.SplitSeq(header, ";") {
		all, ok := strings.CutPrefix(member, lineageMember)
		if !ok {
			members = append(members, member)
			continue
		}
		for one := range strings.SplitSeq(all, "|") {
			if count, ok := strings.CutPrefix(one, mine); ok {
				n, _ = strconv.Atoi(count)
				continue
			}
			others = append(others, one)
		}
	}
	return n, members, others
}

// lineageID returns the text before a function's count in a trace header.
func lineageID(function string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(function)) // never fails
	return fmt.Sprintf("1:%08x:", h.Sum32())
}

// descend returns the trace header for the function's next invocation. It takes the
// header in ctx, or a new header if ctx has none, and raises the function's count by 1.
func descend(ctx context.Context, function string) (string, error) {
	header, _ := ctx.Value(traceKey{}).(string)
	if header == "" {
		header = ids.Trace()
	}
	n, members, others := lineage(header, function)
	if n >= MaxLineage {
		return "", ErrRecursive
	}
	mine := lineageID(function) + strconv.Itoa(n+1)
	return strings.Join(append(members, lineageMember+strings.Join(slices.Insert(others, 0, mine), "|")), ";"), nil
}
