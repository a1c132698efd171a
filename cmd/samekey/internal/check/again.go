package check

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/samekey/samekey/internal/base/storedheaders"
)

// errInfirm ends a check that needs a replay of the first answer, if the API doesn't
// replay this answer. The check named replay has already reported the fault.
const errInfirm = unseen("the API doesn't replay the first answer")

// examination.replay sends the first request again.
func (e *examination) replay(ctx context.Context) (err error) {
	if e.again, err = e.send(ctx, e.keyed(e.key("first"))); err != nil {
		return err
	}
	e.answers = append(e.answers, e.again)
	first, again := e.first, e.again
	e.exact = again.ok() && string(again.body) == string(first.body)
	e.firm = e.exact || again.replays(first)
	switch {
	case !e.exact:
		e.breaks("replay-differs", fmt.Sprintf("the first answer was %s; the second differs: %s", was(first), was(again)))
		if !e.firm { // the request ran again, so a comparison of headers and marks would show nothing new
			return nil
		}
	case again.status != first.status:
		e.breaks("replay-status", fmt.Sprintf("first %d, then %d", first.status, again.status))
	}
	for _, header := range storedheaders.All() {
		name := header.Name
		switch a, b := first.header.Get(name), again.header.Get(name); {
		case a == b, !header.Content:
		case b == "":
			e.breaks("replay-headers", name+" is missing in the replay")
		default:
			e.breaks("replay-headers", name+" differs")
		}
	}
	e.marked("replay-unmarked", first, again)
	for _, a := range []*answer{first, again} {
		if got, want := a.header.Get(keyHeader), e.spelled(e.key("first")); got != want {
			e.breaks("key-unechoed", fmt.Sprintf("sent %q, got %q back", want, got))
		}
	}
	return nil
}

// examination.marked requires that only the second answer is marked as a replay.
func (e *examination) marked(rule string, first, again *answer) {
	marks := [2]string{first.header.Get(replayedHeader), again.header.Get(replayedHeader)}
	if marks != [2]string{"", "true"} {
		e.breaks(rule, fmt.Sprintf("%s is %q first, then %q", replayedHeader, marks[0], marks[1]))
	}
}

// examination.lifetime examines the key's expiry date in the first answer and in its
// replay.
func (e *examination) lifetime(context.Context) error {
	told := e.first.header.Get(expiresHeader)
	if told == "" {
		e.breaks("lifetime-untold", "there is no "+expiresHeader)
		return nil
	}
	at := date(e.first)
	if at.Before(e.first.at.Add(-time.Minute)) {
		e.breaks("lifetime-wrong", fmt.Sprintf("%s is %q", expiresHeader, told))
		return nil
	}
	if e.again == nil || !e.firm {
		return nil
	}
	if date(e.again).Sub(at).Abs() > 2*time.Second {
		e.breaks("lifetime-wrong", fmt.Sprintf("first %q, then %q", told, e.again.header.Get(expiresHeader)))
	}
	return nil
}

// date returns the key's expiry date from an answer; the zero time if the answer has no
// valid date.
func date(a *answer) time.Time {
	at, err := http.ParseTime(a.header.Get(expiresHeader))
	if err != nil {
		return time.Time{}
	}
	return at
}

// examination.quoted sends the first key again, with quotes if the first request had
// none, otherwise without. Some servers accept a key without quotes only if they know
// the key. Therefore begin has tried the key without quotes while the key was new.
func (e *examination) quoted(ctx context.Context) error {
	if !e.firm {
		return errInfirm
	}
	e.quotes = !e.quotes
	a, err := e.send(ctx, e.keyed(e.key("first")))
	e.quotes = !e.quotes
	switch {
	case err != nil:
		return err
	case a.ran(e.again):
		e.breaks("quoted-another", "the first answer was "+was(e.first)+", this answer is "+was(a)+": the request ran again")
	case a.refused() && e.quotes:
		e.breaks("bare-refused", strconv.Itoa(a.status))
	case a.refused():
		e.breaks("quoted-refused", strconv.Itoa(a.status))
	case e.refusedBare != 0:
		e.breaks("bare-refused", strconv.Itoa(e.refusedBare))
	}
	return nil
}

// examination.kept sends the first request again, after other requests with the same
// key.
func (e *examination) kept(ctx context.Context) error {
	if !e.firm {
		return errInfirm
	}
	a, err := e.send(ctx, e.keyed(e.key("first")))
	if err == nil && !a.is(e.again) {
		e.breaks("kept-lost", "the first answer was "+was(e.first)+", this answer is "+was(a))
	}
	return err
}
