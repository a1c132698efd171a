package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/examples/shop/provider"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/lambdatest"
)

func post(path, body string) request {
	ev := request{RawPath: path, Body: body, Headers: map[string]string{"idempotency-key": "5f0ad0f3-7a08-4a5e-8a0f-6c1f2f0c9b1e"}}
	ev.RequestContext.HTTP.Method = http.MethodPost
	return ev
}

var twoTeapots = post("/orders", `{"sku":"teapot","quantity":2,"mail":"jane@example.com"}`)

func testApp(outside http.Client) *app {
	return &app{payments: provider.Client{URL: "https://payments.example", HTTP: outside}, orders: "orders", stock: "stock"}
}

func TestAnOrderIsPaidAndConfirmed(t *testing.T) {
	t.Parallel()
	log, payments := idemtest.Watch(new(idem.MemoryStore)), new(idemtest.Provider)
	shop := testApp(http.Client{Transport: payments})
	re := lambdatest.Replays(t, lambda.Wrap(idem.New(log, idem.OneScope), lambda.HTTPAPI, shop.order), twoTeapots)

	o := idemtest.Committed[Order](t, log, "reserved")
	if re.StatusCode != 201 || o.Result.State != reserved || len(o.Writes) != 2 || !strings.Contains(o.Writes[0], "pieces = pieces - 2 if pieces >= 2") {
		t.Errorf("%d %s, reserved %+v", re.StatusCode, re.Body, o)
	}
	if charges := payments.Effects("/charges"); len(charges) != 1 || !strings.Contains(string(charges[0].Body), `"amount":2400`) {
		t.Errorf("charges %+v", charges)
	}
	if mail := idemtest.Staged[provider.Mail](t, log, "send_mail"); mail.To != "jane@example.com" {
		t.Errorf("mail %+v", mail)
	}
}

// Whatever call the process dies at, the customer pays once, the stock goes down once
// and one mail is sent; a declined card gives the stock back, once.
func TestAnOrderSurvivesACrashEverywhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status, charges int
		fates           []idemtest.Fate
	}{
		"paid":               {201, 1, nil},
		"the answer is lost": {201, 1, []idemtest.Fate{{LoseAnswer: true}}},
		"declined":           {402, 0, []idemtest.Fate{{Refuse: 402}, {Refuse: 402}, {Refuse: 402}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lambdatest.CrashEverywhere(t, func(w *idemtest.World) *lambda.Handler[request, response] {
				return lambda.Wrap(w.Engine(guests), lambda.HTTPAPI, testApp(*w.Client()).order, func(o *lambda.HandlerOptions) { o.Name = "orders" })
			}, twoTeapots, func(t testing.TB, w *idemtest.World, re response) {
				if n := len(w.Provider.Effects("/charges")); re.StatusCode != tt.status || n != tt.charges {
					t.Errorf("%d %s, %d charges", re.StatusCode, re.Body, n)
				}
				if mails := idemtest.AllStaged[provider.Mail](t, w, "send_mail"); len(mails) != tt.charges {
					t.Errorf("mails %+v", mails)
				}
			}, func(o *idemtest.CrashOptions) {
				o.Begin = func(w *idemtest.World) { w.Provider.Next(tt.fates...) }
			})
		})
	}
}

func TestSoldOut(t *testing.T) {
	t.Parallel()
	payments := new(idemtest.Provider)
	shop := testApp(http.Client{Transport: payments})
	empty := &idem.MemoryStore{Apply: func([]store.Write) error { return idem.ErrCondition }}
	re := lambdatest.Replays(t, lambda.Wrap(idem.New(empty, idem.OneScope), lambda.HTTPAPI, shop.order), twoTeapots)
	if re.StatusCode != 409 || !strings.Contains(re.Body, "sold out") || payments.Calls() != 0 {
		t.Errorf("%d %s, %d calls", re.StatusCode, re.Body, payments.Calls())
	}
}

func TestABadOrderIsRefused(t *testing.T) {
	t.Parallel()
	h := lambda.Wrap(idem.New(new(idem.MemoryStore), idem.OneScope), lambda.HTTPAPI, testApp(http.Client{}).order)
	for _, body := range []string{"", "{}", `{"sku":"teapot","mail":"a@b.c"}`, `{"sku":"teapot","quantity":1000,"mail":"a@b.c"}`} {
		if re, err := h.Handle(t.Context(), post("/orders", body)); err != nil || re.StatusCode != 400 {
			t.Errorf("%s: %d, %v", body, re.StatusCode, err)
		}
	}
}

func jsonOf(re response, v any) error { return json.Unmarshal([]byte(re.Body), v) }
