package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/idem/webhook"
)

func TestStripeSignature(t *testing.T) {
	t.Parallel()
	good := stripeSigned(succeeded, start, stripeSecret).Get(webhook.StripeHeader)
	stamp, sum, _ := strings.Cut(good, ",v1=")
	forged := strings.Repeat("ab", sha256.Size)
	at := func(d time.Duration) string {
		return stripeSigned(succeeded, start.Add(d), stripeSecret).Get(webhook.StripeHeader)
	}
	// signedAs has a valid signature over a timestamp in another spelling.
	signedAs := func(t string) string {
		mac := hmac.New(sha256.New, []byte(stripeSecret))
		mac.Write([]byte(t + "." + succeeded))
		return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
	}
	for name, tc := range map[string]struct {
		header string
		want   error
	}{
		"as Stripe signs":                {good, nil},
		"parts in another order":         {"v1=" + sum + "," + stamp, nil},
		"upper-case hex":                 {stamp + ",v1=" + strings.ToUpper(sum), nil},
		"second of two v1":               {stamp + ",v1=" + forged + ",v1=" + sum, nil},
		"first of two v1":                {good + ",v1=" + forged, nil},
		"unknown schemes":                {"v9=abc,x=," + good + ",v0=" + forged + ",v2==", nil},
		"a v1 that is no hex beside":     {stamp + ",v1=zz,v1=" + sum, nil},
		"an empty v1 beside":             {stamp + ",v1=,v1=" + sum, nil},
		"a short v1 beside":              {stamp + ",v1=abcd,v1=" + sum, nil},
		"sixteen signatures":             {good + strings.Repeat(",v1="+forged, 15), nil},
		"sixteen and another scheme":     {good + strings.Repeat(",v1="+forged, 15) + ",v0=" + sum, nil},
		"many short ones beside":         {stamp + strings.Repeat(",v1=abcd", 16) + ",v1=" + sum, nil},
		"good and no hex":                {good + "zz", webhook.ErrNoValidSignature},
		"timestamp with two values":      {stamp + "=1,v1=" + sum, malformed("a part of Stripe-Signature is no pair")},
		"v1 with two values":             {good + ",v1=ab=cd", malformed("a part of Stripe-Signature is no pair")},
		"two timestamps, one empty":      {"t=," + good, malformed("Stripe-Signature has an empty timestamp")},
		"empty":                          {"", webhook.ErrNotSigned},
		"timestamp only":                 {stamp, webhook.ErrNoValidSignature},
		"forged":                         {stamp + ",v1=" + forged, webhook.ErrNoValidSignature},
		"signature and more":             {good + "00", webhook.ErrNoValidSignature},
		"good signature as v0":           {stamp + ",v0=" + sum, webhook.ErrNoValidSignature},
		"another timestamp":              {"t=1800000001,v1=" + sum, webhook.ErrNoValidSignature},
		"white space":                    {stamp + ", v1=" + sum, webhook.ErrNoValidSignature},
		"upper-case scheme":              {stamp + ",V1=" + sum, webhook.ErrNoValidSignature},
		"forged and old":                 {"t=1,v1=" + forged, webhook.ErrNoValidSignature},
		"as old as can be":               {at(-start.Sub(time.Unix(0, 0))), webhook.ErrTooOld},
		"as new as can be":               {signedAs("999999999999"), webhook.ErrTooNew},
		"no timestamp":                   {"v1=" + sum, malformed("Stripe-Signature has no timestamp")},
		"empty timestamp":                {"t=,v1=" + sum, malformed("Stripe-Signature has an empty timestamp")},
		"two timestamps":                 {stamp + "," + good, malformed("Stripe-Signature has two timestamps")},
		"two headers in one":             {good + "," + good, webhook.ErrMalformed},
		"no pair":                        {good + ",v2", malformed("a part of Stripe-Signature is no pair")},
		"trailing comma":                 {good + ",", malformed("a part of Stripe-Signature is no pair")},
		"no header of this kind":         {"Bearer abc", webhook.ErrMalformed},
		"seventeen signatures":           {good + strings.Repeat(",v1="+forged, 16), malformed("more than 16 signatures")},
		"timestamp with a sign":          {signedAs("+1800000000"), malformed("the timestamp is no decimal number of seconds")},
		"negative timestamp":             {signedAs("-1"), webhook.ErrMalformed},
		"timestamp with a zero in front": {signedAs("01800000000"), webhook.ErrMalformed},
		"timestamp in hex":               {signedAs("0x6b49d200"), webhook.ErrMalformed},
		"timestamp with a fraction":      {signedAs("1800000000.0"), webhook.ErrMalformed},
		"timestamp with a space":         {signedAs(" 1800000000"), webhook.ErrMalformed},
		"timestamp in ms, far too long":  {signedAs("1800000000000"), webhook.ErrMalformed},
		"timestamp beyond 64 bits":       {signedAs("18446744075509551616"), webhook.ErrMalformed}, // 2^64 + now
		"timestamp in other digits":      {signedAs("１８００００００００"), webhook.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newStripe(t, newClock())
			ev, err := v.Verify(http.Header{webhook.StripeHeader: {tc.header}}, []byte(succeeded))
			if !is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if err == nil && (ev.ID != "evt_1" || string(ev.Body) != succeeded || start.Sub(ev.Sent).Abs() > 5*time.Minute) {
				t.Errorf("the event is %+v", ev)
			}
			if err != nil {
				if diff := cmp.Diff(webhook.Event{}, ev); diff != "" {
					t.Errorf("an event with the error (-want +got):\n%s", diff)
				}
			}
			// Never more lenient than Stripe's own library.
			theirs := stripehook.ValidatePayloadIgnoringTolerance([]byte(succeeded), tc.header, stripeSecret)
			odd := name == "unknown schemes" // Stripe's library refuses a second "=" in a part, even of another scheme
			if err == nil && theirs != nil && !odd {
				t.Errorf("Stripe's library refuses it: %v", theirs)
			}
		})
	}
}

// A signature covers all bytes.
func TestStripeAlteredBody(t *testing.T) {
	t.Parallel()
	v := newStripe(t, newClock())
	h := stripeSigned(succeeded, start, stripeSecret)
	bodies := []string{"", succeeded + " ", strings.ReplaceAll(succeeded, `":`, `": `)}
	for i := range len(succeeded) {
		altered := []byte(succeeded)
		altered[i] ^= 1
		bodies = append(bodies, string(altered), succeeded[:i])
	}
	for _, body := range bodies {
		if _, err := v.Verify(h, []byte(body)); !errors.Is(err, webhook.ErrNoValidSignature) {
			t.Errorf("%s: %v, want no valid signature", body, err)
		}
	}
}

func TestStripeHeaderNames(t *testing.T) {
	t.Parallel()
	v := newStripe(t, newClock())
	good := stripeSigned(succeeded, start, stripeSecret).Get(webhook.StripeHeader)
	for name, tc := range map[string]struct {
		header http.Header
		want   error
	}{
		"lower case, as HTTP APIs send it": {http.Header{"stripe-signature": {good}}, nil},
		"upper case":                       {http.Header{"STRIPE-SIGNATURE": {good}}, nil},
		"none":                             {http.Header{}, webhook.ErrNotSigned},
		"only by Unicode":                  {http.Header{"\u017ftripe-signature": {good}}, webhook.ErrNotSigned},
		"nil":                              {nil, webhook.ErrNotSigned},
		"no values":                        {http.Header{webhook.StripeHeader: nil}, webhook.ErrNotSigned},
		"another provider's":               {standardHeader("msg_1", start, "v1,AAAA"), webhook.ErrNotSigned},
		"twice":                            {http.Header{webhook.StripeHeader: {good, good}}, webhook.ErrMalformed},
		"twice, in two spellings":          {http.Header{webhook.StripeHeader: {good}, "stripe-signature": {good}}, webhook.ErrMalformed},
		"twice, one empty":                 {http.Header{webhook.StripeHeader: {"", good}}, webhook.ErrMalformed},
	} {
		if _, err := v.Verify(tc.header, []byte(succeeded)); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}

// The ids of bodies with a valid signature.
func TestStripeEventID(t *testing.T) {
	t.Parallel()
	v := newStripe(t, newClock())
	const noObject, noString, noID = "the body is no JSON object", "the body's id is no string", "the event's id is not 1 to 255 visible ASCII characters"
	for body, id := range map[string]string{
		`{"id":"evt_1","object":"event"}`:                   "evt_1",
		`{"id":"!~"}`:                                       "!~",
		`{"object":"v2.core.event","id":"evt_test_65"}`:     "evt_test_65",
		`{"ID":"evt_2","id":"evt_1","Id":"evt_3"}`:          "evt_1",
		`{"data":{"id":"pi_1"},"id":"evt_1"}`:               "evt_1",
		`{"id":"evt_` + strings.Repeat("x", 251) + `"}`:     "evt_" + strings.Repeat("x", 251),
		`{"id":"evt_` + strings.Repeat("x", 252) + `"}`:     noID,
		`{"id":"evt_1","pending_webhooks":1` + "\n\t" + `}`: "evt_1",
		`{"ID":"evt_2"}`:                                    noString,
		`{"data":{"id":"pi_1"}}`:                            noString,
		`{"id":""}`:                                         noID,
		`{"id":null}`:                                       noID,
		`{"id":7}`:                                          noString,
		`{"id":["evt_1"]}`:                                  noString,
		`{"id":"evt 1"}`:                                    noID,
		`{"id":"evt\n1"}`:                                   noID,
		`{"id":"evt_é"}`:                                    noID,
		"{\"id\":\"evt_\xff\"}":                             noID,
		`{"id":"evt_1"`:                                     noObject,
		`{"id":"evt_1"} {}`:                                 noObject,
		`[{"id":"evt_1"}]`:                                  noObject,
		`"evt_1"`:                                           noObject,
		`null`:                                              noString,
		``:                                                  noObject,
		strings.Repeat("[", 20_000):                         noObject,
		strings.Repeat(`{"id":`, 20_000):                    noObject,
		`<event><id>evt_1</id></event>`:                     noObject,
		"id=evt_1&object=event":                             noObject,
		"\xef\xbb\xbf" + `{"id":"evt_1"}`:                   noObject,
	} {
		ev, err := v.Verify(stripeSigned(body, start, stripeSecret), []byte(body))
		if strings.Contains(id, " ") { // what the error says, and it shows nothing of the body
			if !is(err, malformed(id)) || ev.ID != "" {
				t.Errorf("%.60q: got %q, %v, want %q", body, ev.ID, err, id)
			}
		} else if ev.ID != id || err != nil {
			t.Errorf("%.60q: got %q, %v, want %q", body, ev.ID, err, id)
		}
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	c := newClock()
	v := newStripe(t, c, func(o *webhook.VerifierOptions) { o.MoreSecrets = []string{otherSecret} })
	for _, secret := range []string{stripeSecret, otherSecret} {
		if _, err := v.Verify(stripeSigned(succeeded, start, secret), []byte(succeeded)); err != nil {
			t.Errorf("either secret is good: %v", err)
		}
	}
	if _, err := v.Verify(stripeSigned(succeeded, start, "whsec_third"), []byte(succeeded)); !errors.Is(err, webhook.ErrNoValidSignature) {
		t.Errorf("a third one is not: %v", err)
	}
	// During a rotation Stripe sends both signatures in one header.
	now := stripeSigned(succeeded, start, otherSecret).Get(webhook.StripeHeader)
	_, old, _ := strings.Cut(stripeSigned(succeeded, start, stripeSecret).Get(webhook.StripeHeader), ",")
	for name, v := range map[string]webhook.Verifier{"before": newStripe(t, c), "while": v} {
		if _, err := v.Verify(http.Header{webhook.StripeHeader: {now + "," + old}}, []byte(succeeded)); err != nil {
			t.Errorf("%s the receiver rotates: %v", name, err)
		}
	}
}

func TestTolerance(t *testing.T) {
	t.Parallel()
	c := newClock()
	v := newStripe(t, c)
	h := stripeSigned(succeeded, start, stripeSecret)
	for _, tc := range []struct {
		after time.Duration
		want  error
	}{
		{-5*time.Minute - time.Second, says{webhook.ErrTooNew, "5m1s, tolerated are 5m0s"}},
		{-5*time.Minute - time.Nanosecond, webhook.ErrTooNew},
		{-5 * time.Minute, nil},
		{5 * time.Minute, nil},
		{5*time.Minute + time.Nanosecond, webhook.ErrTooOld},
		{5*time.Minute + time.Second, says{webhook.ErrTooOld, "5m1s, tolerated are 5m0s"}},
	} {
		c.now = start.Add(tc.after)
		if _, err := v.Verify(h, []byte(succeeded)); !is(err, tc.want) {
			t.Errorf("%v after it was signed: got %v, want %v", tc.after, err, tc.want)
		}
	}
}

func TestSecretsThatCannotWork(t *testing.T) {
	t.Parallel()
	stripe := func(secret string, optFns ...func(*webhook.VerifierOptions)) error {
		v, err := webhook.NewStripe(secret, optFns...)
		if (v == nil) != (err != nil) {
			t.Errorf("got %v with %v", v, err)
		}
		return err
	}
	standard := func(secret string, optFns ...func(*webhook.VerifierOptions)) error {
		_, err := webhook.NewStandard(secret, optFns...)
		return err
	}
	more := func(s string) func(*webhook.VerifierOptions) {
		return func(o *webhook.VerifierOptions) { o.MoreSecrets = []string{s} }
	}
	const good = standardSecret
	for name, err := range map[string]error{
		"stripe: seven characters":      stripe("MfKQ9r8"),
		"stripe: line break":            stripe(good + "\n"),
		"stripe: two in one":            stripe("whsec_MfKQ9r8GK whsec_MfKQ9r8GK"),
		"stripe: second is empty":       stripe(good, more("")),
		"stripe: no clock":              stripe(good, func(o *webhook.VerifierOptions) { o.Now = nil }),
		"standard: empty":               standard(""),
		"stripe: prefix only":           stripe("whsec_"),
		"stripe: one character":         stripe("M"),
		"stripe: cut off":               stripe("whsec_M"),
		"standard: one byte":            standard("whsec_MQ=="),
		"standard: 23 bytes":            standard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaQ="),
		"standard: 23 without prefix":   standard("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaQ="),
		"standard: word":                standard("MfKQ9r8GK_of_the_endpoint"),
		"standard: another prefix":      standard("whsek_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
		"standard: two in one":          standard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
		"standard: prefix only":         standard("whsec_"),
		"standard: no base64":           standard("whsec_MfKQ9r8GK!"),
		"standard: line break":          standard(good + "\n "),
		"standard: private key":         standard("whsk_V0VCSE9PS0FTWU1NRVRSSUNURVNUUFJJVkFURUtFWTE="),
		"standard: short public key":    standard("whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
		"standard: second is no secret": standard(good, more("MfKQ9r8GK")),
	} {
		if err == nil || strings.Contains(err.Error(), "MfKQ9r8GK") {
			t.Errorf("%s: got %v, want an error that doesn't show the secret", name, err)
		}
	}
	if err := stripe("MfKQ9r8G", more("")); err == nil || err.Error() != "webhook: NewStripe: secret 2: it is empty" {
		t.Errorf("a secret of eight characters, and an empty one: %v", err)
	}
}

// The secret's prefix is not part of the key, and some providers omit the prefix.
func TestStandardSecretWithoutPrefix(t *testing.T) {
	t.Parallel()
	bare := strings.TrimPrefix(standardSecret, "whsec_")
	for name, v := range map[string]webhook.Verifier{
		"first": newStandard(t, newClock(), bare),
		"more":  newStandard(t, newClock(), publicKey(t), func(o *webhook.VerifierOptions) { o.MoreSecrets = []string{bare} }),
	} {
		h := standardHeader("msg_1", start, standardSign(t, "msg_1", start, vectorBody, standardSecret))
		if ev, err := v.Verify(h, []byte(vectorBody)); err != nil || ev.ID != "msg_1" {
			t.Errorf("%s: %+v, %v", name, ev, err)
		}
		if _, err := v.Verify(h, []byte(vectorBody+" ")); !errors.Is(err, webhook.ErrNoValidSignature) {
			t.Errorf("%s, another body: %v", name, err)
		}
	}
}

// A verifier in a log line or a panic must not reveal its secrets.
func TestPrintedVerifierShowsNoSecret(t *testing.T) {
	t.Parallel()
	stripe, standard := newStripe(t, newClock()), newStandard(t, newClock(), standardSecret)
	for _, v := range []any{stripe, reflect.ValueOf(stripe).Elem().Interface(), standard, reflect.ValueOf(standard).Elem().Interface()} {
		for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
			printed := fmt.Sprintf(format, v)
			for _, secret := range []string{stripeSecret, fmt.Sprintf("%x", stripeSecret), fmt.Sprintf("%d", []byte(stripeSecret)), "MfKQ9r8GK", "31f290f6bf06298aab4f"} {
				if strings.Contains(printed, strings.Trim(secret, "[]")) {
					t.Errorf("%s of %T shows the secret", format, v)
				}
			}
		}
	}
}
