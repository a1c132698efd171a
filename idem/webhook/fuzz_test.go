package webhook_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	stripehook "github.com/stripe/stripe-go/v85/webhook"

	"github.com/samekey/samekey/idem/webhook"
)

// Whatever the header contains, Verify doesn't panic, and Stripe's own library
// finds a valid signature in every accepted delivery.
func FuzzStripeSignature(f *testing.F) {
	good := stripeSigned(succeeded, start, stripeSecret).Get(webhook.StripeHeader)
	for _, header := range []string{
		good, "", "t=1800000000", good + ",v0=00", "v1=00," + good, good + "," + good, "t=1,v1=", ",,==,", "t=+1800000000" + good[12:],
	} {
		f.Add(header, succeeded)
	}
	f.Add(good, `{"id":"evt_2"}`)
	f.Fuzz(func(t *testing.T, header, body string) {
		c := newClock()
		v := newStripe(t, c)
		ev, err := v.Verify(http.Header{webhook.StripeHeader: {header}}, []byte(body))
		if err == nil {
			// Their parser refuses "=" in the values of unknown schemes.
			var known []string
			for part := range strings.SplitSeq(header, ",") {
				if strings.HasPrefix(part, "t=") || strings.HasPrefix(part, "v1=") {
					known = append(known, part)
				}
			}
			if theirs := stripehook.ValidatePayloadIgnoringTolerance([]byte(body), strings.Join(known, ","), stripeSecret); theirs != nil {
				t.Errorf("accepted %q, which Stripe's library refuses: %v", header, theirs)
			}
			if ev.ID == "" || string(ev.Body) != body || c.now.Sub(ev.Sent).Abs() > 5*time.Minute {
				t.Errorf("accepted as %+v", ev)
			}
		}
		// A valid signature is found among any other parts, or the whole header is
		// refused; a body without a valid signature is never accepted.
		with := http.Header{webhook.StripeHeader: {header + "," + stripeSigned(body, start, stripeSecret).Get(webhook.StripeHeader)}}
		if ev, err := v.Verify(with, []byte(body)); err == nil && string(ev.Body) != body {
			t.Errorf("the body became %q", ev.Body)
		}
		if _, err := v.Verify(stripeSigned(body, start, otherSecret), []byte(body)); err == nil {
			t.Error("accepted another endpoint's signature")
		}
	})
}

// The same for Standard Webhooks: an accepted delivery has the one valid
// signature.
func FuzzStandardSignature(f *testing.F) {
	good := standardSign(f, vectorID, start, vectorBody, standardSecret)
	for _, signature := range []string{good, "", "v1," + good, vectorForged + " " + good, "v1a," + good[3:], "v1, v1,,", vectorV1a} {
		f.Add(vectorID, "1800000000", signature, vectorBody)
	}
	f.Add("msg.1", "1800000000", good, vectorBody)
	f.Add(vectorID, "+1800000000", good, vectorBody)
	f.Add("msg", "", good, "1800000000."+vectorBody)
	f.Fuzz(func(t *testing.T, id, stamp, signature, body string) {
		c := newClock()
		v := newStandard(t, c, standardSecret)
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {stamp}, "Webhook-Signature": {signature}}
		if ev, err := v.Verify(h, []byte(body)); err == nil {
			right := standardSignText(t, id+"."+stamp+"."+body, standardSecret)
			if !strings.Contains(strings.ReplaceAll(signature, " ", "  "), right) {
				// Base64 has several spellings of the last bits, and may contain line breaks.
				found := false
				for part := range strings.FieldsSeq(signature) {
					sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(part, "v1,"))
					found = found || err == nil && "v1,"+base64.StdEncoding.EncodeToString(sum) == right
				}
				if !found {
					t.Errorf("accepted %q, want %q", signature, right)
				}
			}
			if ev.ID != id || string(ev.Body) != body || strings.Contains(id, ".") || c.now.Sub(ev.Sent).Abs() > 5*time.Minute {
				t.Errorf("accepted as %+v", ev)
			}
		}
		if id == "" || len(id) > 255 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '.' }) {
			return
		}
		if ev, err := v.Verify(standardHeader(id, start, standardSign(t, id, start, body, standardSecret)), []byte(body)); err != nil || ev.ID != id {
			t.Errorf("refused a good one: %+v, %v", ev, err)
		}
		if _, err := v.Verify(standardHeader(id, start.Add(time.Second), standardSign(t, id, start, body, standardSecret)), []byte(body)); err == nil {
			t.Error("accepted another timestamp")
		}
	})
}

// For any signed body, Verify doesn't panic, and returns an id only if the id can
// be a key.
func FuzzStripeEvent(f *testing.F) {
	for _, body := range []string{succeeded, `{"id":1}`, `{"id":"a","id":"b"}`, `{"ID":"x"}`, `[]`, ``, "{\"id\":\"\xff\"}", `{"id":"\u0000"}`, `{"id":"\ud800"}`} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		ev, err := newStripe(t, newClock()).Verify(stripeSigned(body, start, stripeSecret), []byte(body))
		if bad := ev.ID == "" || len(ev.ID) > 255 || strings.ContainsFunc(ev.ID, func(r rune) bool { return r <= ' ' || r > '~' }); bad != (err != nil) {
			t.Errorf("id %q with %v", ev.ID, err)
		}
	})
}
