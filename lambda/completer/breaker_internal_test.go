package completer

import (
	"strconv"
	"testing"
	"time"
)

// A thousand functions that fail are remembered, and none that works takes a place.
func TestBreakersAreBounded(t *testing.T) {
	t.Parallel()
	b, now := newBreakers(time.Minute), time.Now()
	fails := func(function string) {
		for range failures {
			b.leave(function, now, TicketFailed)
		}
	}
	for i := range mostBreakers {
		fails(strconv.Itoa(i))
	}
	b.leave("works", now, TicketDone)
	if _, may := b.enter("0", now); may {
		t.Error("the first one is forgotten")
	}
	fails("one more")
	if _, may := b.enter("1", now); !may {
		t.Error("the second one is remembered")
	}
}
