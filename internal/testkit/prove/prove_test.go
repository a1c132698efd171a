package prove_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/testkit/prove"
)

func TestSample(t *testing.T) {
	ten := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for _, tt := range []struct {
		env  string
		n    int
		want []int
	}{
		{"", 3, []int{0, 3, 6}},
		{"", 4, []int{0, 2, 5, 7}},
		{"", 1, []int{0}},
		{"", 10, ten},
		{"", 11, ten},
		{"all", 3, ten},
		{"some", 1, []int{0}},
	} {
		t.Setenv("PROVE", tt.env)
		if diff := cmp.Diff(tt.want, prove.Sample(t, tt.n, ten)); diff != "" {
			t.Errorf("PROVE=%s, %d of ten (-want +got):\n%s", tt.env, tt.n, diff)
		}
		if got, want := prove.Some(1, 2) == 2, tt.env == "all"; got != want {
			t.Errorf("PROVE=%s: Some is all of it: %t, want %t", tt.env, got, want)
		}
	}
}
