package webhook_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/idem/webhook"
)

// The test vectors of the specification's reference libraries.
const (
	vectorID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorBody   = `{"test": 2432232314}`
	vectorV1     = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	vectorV1a    = "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="
	vectorSeed   = "VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
	vectorForged = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
)

var vectorTime = time.Unix(1614265330, 0)

// publicKey is the whpk_ of the vectors' private key.
func publicKey(t testing.TB) string {
	t.Helper()
	seed, err := base64.StdEncoding.DecodeString(vectorSeed)
	if err != nil {
		t.Fatal(err)
	}
	pub := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	return "whpk_" + base64.StdEncoding.EncodeToString(pub)
}

func TestStandardVectors(t *testing.T) {
	t.Parallel()
	c := &clock{now: vectorTime}
	for name, tc := range map[string]struct{ secret, signature string }{
		"symmetric":  {standardSecret, vectorV1},
		"asymmetric": {publicKey(t), vectorV1a},
	} {
		v := newStandard(t, c, tc.secret)
		ev, err := v.Verify(standardHeader(vectorID, vectorTime, tc.signature), []byte(vectorBody))
		if err != nil || ev.ID != vectorID || string(ev.Body) != vectorBody || !ev.Sent.Equal(vectorTime) {
			t.Errorf("%s: got %+v, %v", name, ev, err)
		}
	}
	if got := standardSign(t, vectorID, vectorTime, vectorBody, standardSecret); got != vectorV1 {
		t.Errorf("the tests sign %s, the vector is %s", got, vectorV1)
	}
}

func TestStandardSignature(t *testing.T) {
	t.Parallel()
	sign := func(id string, at time.Time) http.Header {
		return standardHeader(id, at, standardSign(t, id, at, vectorBody, standardSecret))
	}
	with := func(name, value string) http.Header {
		h := sign(vectorID, start)
		h[name] = []string{value}
		return h
	}
	without := func(name string) http.Header {
		h := sign(vectorID, start)
		h.Del(name)
		return h
	}
	signatures := func(s ...string) http.Header {
		good := standardSign(t, vectorID, start, vectorBody, standardSecret)
		return with("Webhook-Signature", strings.ReplaceAll(strings.Join(s, " "), "good", good))
	}
	// stamped has a valid signature over a timestamp in another spelling.
	stamped := func(s string) http.Header {
		h := with("Webhook-Timestamp", s)
		h["Webhook-Signature"] = []string{standardSignText(t, vectorID+"."+s+"."+vectorBody, standardSecret)}
		return h
	}
	lower := make(http.Header)
	for name, values := range sign(vectorID, start) {
		lower[strings.ToLower(name)] = values
	}
	for name, tc := range map[string]struct {
		header http.Header
		want   error
	}{
		"as specified":                 {sign(vectorID, start), nil},
		"lower-case names":             {lower, nil},
		"one good of several":          {signatures(vectorForged, "v2,Ceo5", "good", vectorForged), nil},
		"unknown schemes":              {signatures("v1b,AAAA", "v3", "good", "v,"), nil},
		"no base64 beside":             {signatures("v1,!!!", "v1,", "v1", "good"), nil},
		"many of unknown schemes":      {signatures(strings.Repeat("v2,AAAA ", 17), "good"), nil},
		"good and no base64":           {signatures("good!"), webhook.ErrNoValidSignature},
		"more spaces":                  {signatures("", "good", ""), nil},
		"longest id":                   {sign(strings.Repeat("m", 255), start), nil},
		"id with other punctuation":    {sign("msg:1/2#3", start), nil},
		"5 min old":                    {sign(vectorID, start.Add(-5*time.Minute)), nil},
		"5 min ahead":                  {sign(vectorID, start.Add(5*time.Minute)), nil},
		"no signature":                 {without("Webhook-Signature"), webhook.ErrNotSigned},
		"empty signature":              {with("Webhook-Signature", ""), webhook.ErrNotSigned},
		"no headers":                   {nil, webhook.ErrNotSigned},
		"Stripe's":                     {stripeSigned(vectorBody, start, stripeSecret), webhook.ErrNotSigned},
		"forged":                       {signatures(vectorForged), webhook.ErrNoValidSignature},
		"empty v1":                     {signatures("v1,"), webhook.ErrNoValidSignature},
		"good as v1a":                  {signatures("v1a" + standardSign(t, vectorID, start, vectorBody, standardSecret)[2:]), webhook.ErrNoValidSignature},
		"joined by commas":             {signatures(vectorForged + ",good"), webhook.ErrNoValidSignature},
		"another id":                   {with("Webhook-Id", "msg_2"), webhook.ErrNoValidSignature},
		"another time":                 {with("Webhook-Timestamp", "1800000001"), webhook.ErrNoValidSignature},
		"5 min 1 s old":                {sign(vectorID, start.Add(-301*time.Second)), webhook.ErrTooOld},
		"5 min 1 s ahead":              {sign(vectorID, start.Add(301*time.Second)), webhook.ErrTooNew},
		"no id":                        {without("Webhook-Id"), malformed("the event's id is not 1 to 255 visible ASCII characters")},
		"empty id":                     {sign("", start), webhook.ErrMalformed},
		"id too long":                  {sign(strings.Repeat("m", 256), start), webhook.ErrMalformed},
		"id with a space":              {sign("msg .1", start), malformed("the event's id is not 1 to 255 visible ASCII characters")},
		"id not ASCII":                 {sign("msg_é", start), webhook.ErrMalformed},
		"id with a full stop":          {sign("msg.1", start), malformed("Webhook-Id has a full stop in it")},
		"two ids":                      {http.Header{"Webhook-Id": {"a", "b"}, "Webhook-Signature": {"v1,AAAA"}}, malformed("more than one Webhook-Id")},
		"no timestamp":                 {without("Webhook-Timestamp"), webhook.ErrMalformed},
		"two timestamps":               {http.Header{"Webhook-Id": {"a"}, "Webhook-Timestamp": {"1", "1"}, "Webhook-Signature": {"v1,AAAA"}}, malformed("more than one Webhook-Timestamp")},
		"timestamp with a sign":        {stamped("+1800000000"), webhook.ErrMalformed},
		"timestamp with a fraction":    {stamped("1800000000.5"), webhook.ErrMalformed},
		"timestamp as a date":          {stamped("2027-01-15T08:00:00Z"), webhook.ErrMalformed},
		"timestamp with a zero before": {stamped("01800000000"), webhook.ErrMalformed},
		"two signature headers":        {http.Header{"Webhook-Signature": {vectorV1, vectorV1}}, webhook.ErrMalformed},
		"seventeen signatures":         {signatures(strings.Repeat(vectorForged+" ", 16), "good"), malformed("more than 16 signatures")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, err := newStandard(t, newClock(), standardSecret).Verify(tc.header, []byte(vectorBody))
			if !is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if _, there := tc.header["Webhook-Id"]; err == nil && there && ev.ID != tc.header.Get("Webhook-Id") {
				t.Errorf("the event's id is %q, want %q", ev.ID, tc.header.Get("Webhook-Id"))
			}
		})
	}
}
