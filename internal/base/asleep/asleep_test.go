package asleep_test

import (
	"context"
	"testing"

	"github.com/samekey/samekey/internal/base/asleep"
)

func TestAsleep(t *testing.T) {
	t.Parallel()
	awake := context.Background()
	if asleep.In(awake) || !asleep.In(context.WithValue(asleep.With(awake), t, 1)) {
		t.Error("got another answer than was set")
	}
}
