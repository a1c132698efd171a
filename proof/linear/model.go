package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// kind is what an event tells of a key. A request whose handler runs is two
// events, since it touches the key twice: it begins and it ends.
type kind string

const (
	began        kind = "began"         // the handler was entered
	beginUnknown kind = "begin unknown" // refused without a verdict: it may have claimed the key
	stored       kind = "stored"        // ended with a stored answer
	released     kind = "released"      // ended with the handler's error, key free again
	endUnknown   kind = "end unknown"   // ended, and what is stored of it isn't known
	leaseLost    kind = "lease lost"    // ended, overtaken
	replayed     kind = "replayed"      // given a stored answer
	inFlight     kind = "in flight"     // refused
	mismatch     kind = "mismatch"      // refused
	notKept      kind = "not kept"      // refused
	leasesOver   kind = "leases are over"

	tookUnseen    kind = "may have held the key" // by an attempt that was told of another
	maybeReleased kind = "maybe released"        // by an attempt that was overtaken in the end
)

// event is the input of the model. It holds the outcome too.
type event struct {
	kind      kind
	attempt   int
	request   string // what counts of it
	answer    string // status and body given
	overtaken bool   // the attempt's handler ran, and another's answer counts
	late      bool   // leases ended while it was under way: a lease that it had computed before is over too
}

func (e event) String() string {
	return fmt.Sprintf("attempt %d: %s %s %s", e.attempt, e.kind, e.request, e.answer)
}

// keyState is one key, as far as clients can tell. The zero value is no record.
type keyState struct {
	is      is
	request string
	holder  int    // the attempt that may still end an open one; 0 after a release
	over    bool   // its lease: anybody may take over
	answer  string // of a done one
	kept    bool   // the answer is
}

type is int

const (
	none is = iota
	open
	done
)

// keyModel is the contract of one key as a state machine. Where an outcome is
// unknown it has several successors.
func keyModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{keyState{}} },
		Step: func(state, input, _ any) []any {
			after := step(state.(keyState), input.(event))
			next := make([]any, 0, len(after))
			for _, s := range after {
				next = append(next, s)
			}
			return next
		},
	}
	return m.ToModel()
}

// step returns what s may become by ev; nothing, if ev can't happen to s.
func step(s keyState, ev event) []keyState {
	if ev.overtaken && s.is == open && s.holder == ev.attempt {
		return nil // nobody had overtaken it
	}
	possible := func(ok bool, next ...keyState) []keyState {
		if !ok {
			return nil
		}
		return next
	}
	mine := s.is == open && s.holder == ev.attempt
	same := s.request == ev.request
	switch ev.kind {
	case began:
		return opened(s, ev)
	case beginUnknown, tookUnseen:
		return append([]keyState{s}, opened(s, ev)...)
	case stored:
		return possible(mine, finish(s, ev, true), finish(s, ev, false))
	case released:
		return possible(mine, keyState{})
	case maybeReleased:
		if !mine {
			return []keyState{s}
		}
		return []keyState{s, {}}
	case endUnknown:
		if !mine {
			return []keyState{s}
		}
		return []keyState{s, finish(s, ev, true), finish(s, ev, false), {}}
	case leaseLost:
		return []keyState{s}
	case replayed:
		return possible(s.is == done && same && s.kept && s.answer == ev.answer, s)
	case notKept:
		return possible(s.is == done && same && !s.kept, s)
	case inFlight:
		return possible(s.is == open && same && !s.over, s)
	case mismatch:
		return possible(s.is != none && !same, s)
	case leasesOver:
		s.over = s.is == open
		return []keyState{s}
	}
	return nil
}

// opened is a claim, or a take-over of what nobody holds; nothing, if neither can be.
func opened(s keyState, ev event) []keyState {
	next := keyState{is: open, request: ev.request, holder: ev.attempt}
	if s.is != none && (s.is != open || !s.over || s.request != ev.request) {
		return nil
	}
	if !ev.late {
		return []keyState{next}
	}
	over := next
	over.over = true
	return []keyState{next, over}
}

func finish(s keyState, ev event, kept bool) keyState {
	return keyState{is: done, request: s.request, answer: ev.answer, kept: kept}
}
