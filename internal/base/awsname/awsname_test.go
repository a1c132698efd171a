package awsname

import (
	"strings"
	"testing"
)

// Different ids have different names, of the alphabet and within the length that all services
// take; the same id always has the same.
func TestNames(t *testing.T) {
	t.Parallel()
	ids := []string{
		"EZWHYABCDEFGHIJKLMNOPQRSTU.2.0", "EZWHYABCDEFGHIJKLMNOPQRSTU.2.1", "EZWHYABCDEFGHIJKLMNOPQRSTU.21.0",
		"a.b", "a_b", "a-b", "", strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 66), "a b", "ä.0.0",
	}
	seen := make(map[string]string)
	for _, id := range ids {
		name := Of(id, "", 64)
		if other, twice := seen[name]; twice {
			t.Errorf("%q and %q are both %q", other, id, name)
		}
		seen[name] = id
		if name != Of(id, "", 64) || name == "" || len(name) > 64 ||
			strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("%q is named %q", id, name)
		}
	}
	if got := Of(ids[0], "", 64); got != "EZWHYABCDEFGHIJKLMNOPQRSTU_2_0" {
		t.Errorf("%q: an operator can't read %q", ids[0], got)
	}
	if a, b := Of("a b", "one", 64), Of("a b", "two", 64); a == b {
		t.Errorf("the odd ids of two owners are both %q", a)
	}
}
