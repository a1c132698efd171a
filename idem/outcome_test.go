package idem_test

import (
	"errors"
	"testing"

	"github.com/samekey/samekey/idem"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		err    error
		want   idem.Outcome
		retry  bool
	}{
		{200, nil, idem.Succeeded, false},
		{204, nil, idem.Succeeded, false},
		{200, errors.New("unexpected EOF"), idem.Unknown, true},
		{0, nil, idem.Unknown, true},
		{302, nil, idem.Rejected, false},
		{400, nil, idem.Rejected, false},
		{402, nil, idem.Declined, false},
		{408, nil, idem.Unknown, true},
		{409, nil, idem.Pending, true},
		{422, nil, idem.Rejected, false},
		{429, nil, idem.Unknown, true},
		{500, nil, idem.Unknown, true},
		{503, nil, idem.Unknown, true},
	} {
		got := idem.Classify(tc.status, tc.err)
		if got != tc.want || got.Retry() != tc.retry {
			t.Errorf("%d, %v: %v, retry %t", tc.status, tc.err, got, got.Retry())
		}
	}
}
