package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/samekey/samekey/proof/internal/harness"
)

// slice is a part of the table: every line whose place, divided by n, leaves at. So
// each part has lines of each package. The zero slice is the whole.
type slice struct{ at, n int }

// parseSlice reads "2/4", the second quarter, and "commit/4", the quarter that the
// hash of the checkout's commit chooses: a different one from commit to commit, and
// the same for all who run the same commit.
func parseSlice(ctx context.Context, text string) (slice, error) {
	if text == "" {
		return slice{}, nil
	}
	which, of, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(of)
	if err != nil || n < 1 {
		return slice{}, fmt.Errorf("a slice is 2/4 or commit/4, not %q", text)
	}
	if which == "commit" {
		hash, err := harness.Commit(ctx, ".")
		if err != nil {
			return slice{}, err
		}
		return chosen(hash, n)
	}
	at, err := strconv.Atoi(which)
	if err != nil || at < 1 || at > n {
		return slice{}, fmt.Errorf("a slice is 2/4 or commit/4, not %q", text)
	}
	return slice{at - 1, n}, nil
}

// chosen is the part of n that a commit's hash chooses.
func chosen(hash string, n int) (slice, error) {
	const enough = 15
	number, err := strconv.ParseInt(hash[:min(enough, len(hash))], 16, 64)
	if err != nil {
		return slice{}, fmt.Errorf("a commit's hash: %w", err)
	}
	return slice{int(number % int64(n)), n}, nil
}

func (s slice) of(ms []mutant) []mutant {
	if s.n == 0 {
		return ms
	}
	var part []mutant
	for i, m := range ms {
		if i%s.n == s.at {
			part = append(part, m)
		}
	}
	return part
}

func (s slice) String() string {
	if s.n == 0 {
		return "the whole table"
	}
	return fmt.Sprintf("slice %d/%d", s.at+1, s.n)
}
