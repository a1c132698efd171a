package sink

import (
	"strings"
	"testing"
)

// Different jobs have different names, of the alphabet and within the length that all services
// take; the same job always has the same.
func TestExecutionNames(t *testing.T) {
	t.Parallel()
	ids := []string{
		"EZWHYABCDEFGHIJKLMNOPQRSTU.2.0", "EZWHYABCDEFGHIJKLMNOPQRSTU.2.1", "EZWHYABCDEFGHIJKLMNOPQRSTU.21.0",
		"a.b", "a_b", "a-b", "", strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 66), "a b", "ä.0.0",
	}
	seen := make(map[string]string)
	for _, id := range ids {
		name := executionName(id)
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q are both %q", other, id, name)
		}
		seen[name] = id
		if name != executionName(id) || name == "" || len(name) > maxName ||
			strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("%q is named %q", id, name)
		}
	}
	if got := executionName(ids[0]); got != "EZWHYABCDEFGHIJKLMNOPQRSTU_2_0" {
		t.Errorf("%q: an operator can't read %q", ids[0], got)
	}
}
