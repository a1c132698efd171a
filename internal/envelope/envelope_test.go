package envelope_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/envelope"
)

var someTicket = jobs.Ticket{PK: "v1#rides#x<>&é", Owner: "OWNER", Ver: 3}

func TestTicketEnvelope(t *testing.T) {
	t.Parallel()
	payload := envelope.EncodeTicket(someTicket)
	const want = `{"samekey":{"resume":{"pk":"v1#rides#x\u003c\u003e\u0026é","owner":"OWNER","ver":3}}}`
	if string(payload) != want {
		t.Errorf("got %s, want %s", payload, want)
	}
	if got, ok, err := envelope.ParseTicket(payload); got != someTicket || !ok || err != nil {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
	released := someTicket
	released.Released = true
	if got, ok, err := envelope.ParseTicket(envelope.EncodeTicket(released)); got != released || !ok || err != nil {
		t.Errorf("released: got %+v, %v, %v", got, ok, err)
	}
}

func TestParseTicket(t *testing.T) {
	t.Parallel()
	const (
		event = iota // for the handler
		sound        // an envelope
		bad          // meant to be one
	)
	for name, test := range map[string]struct {
		payload string
		want    int
	}{
		"in another order":                  {`{"samekey":{"resume":{"ver":3,"owner":"o","pk":"p"}}}`, sound},
		"with space":                        {" {\n\"samekey\" : { \"resume\" : { \"pk\":\"p\", \"owner\":\"o\", \"ver\":3 } } }\n", sound},
		"nothing":                           {``, event},
		"not JSON":                          {`{"samekey":`, event},
		"more after it":                     {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":3}}} {}`, event},
		"null":                              {`null`, event},
		"a text":                            {`"samekey"`, event},
		"a list":                            {`[{"samekey":{}}]`, event},
		"an empty object":                   {`{}`, event},
		"another member beside it":          {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":3}},"version":"2.0"}`, event},
		"another member before it":          {`{"body":"","samekey":{"resume":{"pk":"p","owner":"o","ver":3}}}`, event},
		"deeper in":                         {`{"detail":{"samekey":{"resume":{"pk":"p","owner":"o","ver":3}}}}`, event},
		"in a body":                         {`{"body":"{\"samekey\":{\"resume\":{\"pk\":\"p\",\"owner\":\"o\",\"ver\":3}}}"}`, event},
		"in capitals":                       {`{"SameKey":{"resume":{"pk":"p","owner":"o","ver":3}}}`, event},
		"spelled with an escape":            {`{"same\u006bey":{"resume":{"pk":"p","owner":"o","ver":3}}}`, event},
		"larger than any":                   {`{"samekey":{"resume":{"pk":"` + strings.Repeat("p", 4<<10) + `","owner":"o","ver":3}}}`, event},
		"twice":                             {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":3}},"samekey":{"resume":{"pk":"q","owner":"o","ver":3}}}`, bad},
		"empty":                             {`{"samekey":{}}`, bad},
		"without content":                   {`{"samekey":null}`, bad},
		"a number":                          {`{"samekey":1}`, bad},
		"a list of resumes":                 {`{"samekey":[{"resume":{"pk":"p","owner":"o","ver":3}}]}`, bad},
		"another verb":                      {`{"samekey":{"finish":{"pk":"p","owner":"o","ver":3}}}`, bad},
		"a second verb":                     {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":3},"identity":"root"}}`, bad},
		"the verb twice":                    {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":3},"resume":{"pk":"q","owner":"o","ver":3}}}`, bad},
		"the verb in capitals":              {`{"samekey":{"Resume":{"pk":"p","owner":"o","ver":3}}}`, bad},
		"an identity with the ticket":       {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":3,"identity":"root"}}}`, bad},
		"two keys":                          {`{"samekey":{"resume":{"pk":"p","pk":"q","owner":"o","ver":3}}}`, bad},
		"a key in capitals":                 {`{"samekey":{"resume":{"PK":"p","owner":"o","ver":3}}}`, bad},
		"no key":                            {`{"samekey":{"resume":{"owner":"o","ver":3}}}`, bad},
		"an empty key":                      {`{"samekey":{"resume":{"pk":"","owner":"o","ver":3}}}`, bad},
		"a key that is null":                {`{"samekey":{"resume":{"pk":null,"owner":"o","ver":3}}}`, bad},
		"no owner":                          {`{"samekey":{"resume":{"pk":"p","ver":3}}}`, bad},
		"an empty owner":                    {`{"samekey":{"resume":{"pk":"p","owner":"","ver":3}}}`, bad},
		"no version":                        {`{"samekey":{"resume":{"pk":"p","owner":"o"}}}`, bad},
		"version zero":                      {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":0}}}`, bad},
		"a version below zero":              {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":-3}}}`, bad},
		"a version that is text":            {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":"3"}}}`, bad},
		"a version that is no whole number": {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":3.5}}}`, bad},
		"a version out of range":            {`{"samekey":{"resume":{"pk":"p","owner":"o","ver":9223372036854775808}}}`, bad},
		"an outcome":                        {`{"samekey":{"outcome":"done"}}`, bad},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok, err := envelope.ParseTicket([]byte(test.payload))
			if ok != (test.want == sound) || (err != nil) != (test.want == bad) {
				t.Errorf("got %+v, %v, %v", got, ok, err)
			}
			want := jobs.Ticket{}
			if test.want == sound {
				want = jobs.Ticket{PK: "p", Owner: "o", Ver: 3}
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestOutcomeOf(t *testing.T) {
	t.Parallel()
	wrapped := func(err error) error { return fmt.Errorf("wrapped: %w", err) }
	for name, test := range map[string]struct {
		err  error
		want envelope.Outcome
	}{
		"done":                         {nil, envelope.Outcome{Kind: envelope.Done}},
		"somebody went on":             {wrapped(jobs.ErrMoved), envelope.Outcome{Kind: envelope.Moved}},
		"of another handler":           {wrapped(jobs.ErrNotMine), envelope.Outcome{Kind: envelope.NotMine, Error: "wrapped: " + jobs.ErrNotMine.Error()}},
		"overtaken while at it":        {wrapped(idem.ErrLeaseLost), envelope.Outcome{Kind: envelope.Moved}},
		"held":                         {&idem.Error{Op: "resume", RetryAfter: time.Minute, Err: idem.ErrInFlight}, envelope.Outcome{Kind: envelope.InFlight, RetryAfter: time.Minute}},
		"held, nobody knows how long":  {idem.ErrInFlight, envelope.Outcome{Kind: envelope.InFlight}},
		"stuck":                        {wrapped(idem.ErrStuck), envelope.Outcome{Kind: envelope.Stuck, Error: "wrapped: " + idem.ErrStuck.Error()}},
		"to be stuck, but not written": {errors.Join(idem.ErrStuck, idem.ErrUnavailable), envelope.Outcome{Kind: envelope.Failed, Error: idem.ErrStuck.Error() + "\n" + idem.ErrUnavailable.Error()}},
		"the store is down":            {idem.ErrUnavailable, envelope.Outcome{Kind: envelope.Failed, Error: idem.ErrUnavailable.Error()}},
		"altered by hand":              {wrapped(store.ErrCorrupt), envelope.Outcome{Kind: envelope.Unreadable, Error: "wrapped: " + store.ErrCorrupt.Error()}},
		"nobody knows":                 {store.ErrUnknown, envelope.Outcome{Kind: envelope.Failed, Error: store.ErrUnknown.Error()}},
		"the handler":                  {errors.New("card reader on fire"), envelope.Outcome{Kind: envelope.Failed, Error: "card reader on fire"}},
		"a long story":                 {errors.New(strings.Repeat("é", 300)), envelope.Outcome{Kind: envelope.Failed, Error: strings.Repeat("é", 128)}},
		"a story cut in a letter":      {errors.New("x" + strings.Repeat("é", 300)), envelope.Outcome{Kind: envelope.Failed, Error: "x" + strings.Repeat("é", 127)}},
		"bytes that are no text":       {errors.New("a\xffb"), envelope.Outcome{Kind: envelope.Failed, Error: "ab"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := envelope.OutcomeOf(test.err)
			if diff := cmp.Diff(test.want, o); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			got, err := envelope.ParseOutcome(envelope.EncodeOutcome(o))
			if diff := cmp.Diff(o, got); diff != "" || err != nil {
				t.Errorf("there and back: %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestParseOutcome(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for payload, want := range map[string]envelope.Outcome{
		`{"samekey":{"outcome":"in_flight","retry_after_ms":1500}}`:                {Kind: envelope.InFlight, RetryAfter: 1500 * time.Millisecond},
		`{"samekey":{"outcome":"in_flight","retry_after_ms":-5}}`:                  {Kind: envelope.InFlight},
		`{"samekey":{"outcome":"in_flight","retry_after_ms":9223372036854775807}}`: {Kind: envelope.InFlight, RetryAfter: day},
		`{"samekey":{"outcome":"done","of":"a later version"}}`:                    {Kind: envelope.Done},
	} {
		if got, err := envelope.ParseOutcome([]byte(payload)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", payload, got, err)
		}
	}
	for _, payload := range []string{
		``, `null`, `"done"`, `{}`, `{"statusCode":200,"body":"ok"}`, `{"errorMessage":"task timed out"}`,
		`{"samekey":null}`, `{"samekey":{}}`, `{"samekey":{"outcome":""}}`, `{"samekey":{"outcome":"DONE"}}`,
		`{"samekey":{"outcome":1}}`, `{"samekey":{"outcome":"in_flight","retry_after_ms":"soon"}}`,
		`{"samekey":{"outcome":"done"},"x":1}`, `{"samekey":{"outcome":"moved"},"samekey":{"outcome":"done"}}`,
	} {
		if got, err := envelope.ParseOutcome([]byte(payload)); err == nil {
			t.Errorf("%s is taken for %+v", payload, got)
		}
	}
}

// FuzzEnvelope: no payload breaks the parsers; what they take is complete, has
// nothing beside it, and comes back the same.
func FuzzEnvelope(f *testing.F) {
	f.Add(envelope.EncodeTicket(someTicket))
	f.Add(envelope.EncodeOutcome(envelope.Outcome{Kind: envelope.InFlight, RetryAfter: time.Second, Error: "<é>"}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if len(payload) > 1<<10 {
			return // what isn't UTF-8 grows on its way back, and an envelope has a limit
		}
		if got, ok, err := envelope.ParseTicket(payload); ok {
			if err != nil || got.PK == "" || got.Owner == "" || got.Ver < 1 {
				t.Errorf("took %q for %+v, %v", payload, got, err)
			}
			var all map[string]map[string]map[string]any
			if err := json.Unmarshal(payload, &all); err != nil || len(all) != 1 || len(all["samekey"]) != 1 || len(all["samekey"]["resume"]) != 3 {
				t.Errorf("took %q", payload)
			}
			if again, ok, err := envelope.ParseTicket(envelope.EncodeTicket(got)); again != got || !ok || err != nil {
				t.Errorf("%+v came back as %+v, %v, %v", got, again, ok, err)
			}
		} else if got != (jobs.Ticket{}) {
			t.Errorf("refused %q, but returned %+v", payload, got)
		}
		if got, err := envelope.ParseOutcome(payload); err == nil {
			if got.RetryAfter < 0 || got.RetryAfter > 24*time.Hour {
				t.Errorf("took %q for %+v", payload, got)
			}
			if again, err := envelope.ParseOutcome(envelope.EncodeOutcome(got)); err != nil || again != got {
				t.Errorf("%+v came back as %+v, %v", got, again, err)
			}
		}
	})
}
