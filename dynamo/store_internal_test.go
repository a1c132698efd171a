package dynamo

import (
	"regexp"
	"strings"
	"testing"
)

// TestTableNames compares the form of names with its regular expression.
func TestTableNames(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^([a-zA-Z0-9_.-]{3,255}|arn:[a-zA-Z0-9:/_.-]+)$`)
	names := []string{
		"", "ab", "abc", "a.b-c_D9", "samekey:", "sämekey", "same key", "same/key", "arn", "arn:", "arn:x", "arn:\n", "arnold", "arnold:x",
		"arn:aws:dynamodb:eu-central-1:123456789012:table/samekey", "arn:aws:dynamodb:eu-central-1:123456789012:table/same key",
		strings.Repeat("n", 255), strings.Repeat("n", 256), "arn:" + strings.Repeat("n", 300),
	}
	for c := range rune(256) {
		names = append(names, "ab"+string(c), "arn:ab"+string(c), string(c)+"arn:ab")
	}
	for _, name := range names {
		if got, want := tableName(name), form.MatchString(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
