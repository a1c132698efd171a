package prove

import "testing"

// A program of another release has other templates.
func TestSameVersion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		program, own string
		same         bool
	}{
		{"v0.1.0", "v0.1.0", true},
		{"v0.1.0", "v0.2.0", false},
		{"v0.0.0-20261127120000-0123456789ab", "v0.1.0", false},
		{"(devel)", "v0.1.0", true},
		{"v0.1.0", "(devel)", true},
		{"v0.1.0", "v0.0.0-20261127120000-0123456789ab+dirty", true},
		{"v0.1.0", "", true},
	} {
		if err := sameVersion(test.program, test.own); (err == nil) != test.same {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
