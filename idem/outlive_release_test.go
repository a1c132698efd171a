package idem

import (
	"context"
	"slices"
	"testing"
)

// Records stay for days, and releases come and go meanwhile: a release that gave a request
// another key or fingerprint would carry out a retry a second time, or refuse it. So these
// texts never change.
func TestWhatRecordsHoldOutlivesARelease(t *testing.T) {
	t.Parallel()
	held := func(r Request, opt ...func(*Options)) [2]string {
		t.Helper()
		var mem MemoryStore
		r.Key, r.Identity = "a-key-of-22-characters", Identity{Kind: "jwt", Subject: "ann"}
		if _, err := New(&mem, append(opt, func(o *Options) { o.Namespace = "shop" })...).Do(t.Context(), r, func(context.Context) (Response, error) {
			return Response{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		for pk, rec := range mem.Records() {
			return [2]string{pk, rec.Fingerprint}
		}
		return [2]string{}
	}
	form, large, tenant := base(), base(), base()
	form.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	form.Body = []byte("--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--x--\r\n")
	large.Body = slices.Repeat([]byte("x"), 1000)
	tenant.Tenant, tenant.Route = "t", "POST /orders"
	for name, tc := range map[string]struct{ got, want [2]string }{
		"default":      {held(base()), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "1d126f79f151d3628cd9c35d19a377c64aaf6c5ade9638fd934d5a6bab350e9c"}},
		"a large body": {held(large), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "4716de11d6d877a36e9a22aac30fef88b2da0e63edfb783c7f073534d2307b94"}},
		"a form":       {held(form), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "d416d70d69da0d162293f397890ca9e41d7ae99d25d22a0da6c7f8d1d9f7ba95"}},
		"a tenant":     {held(tenant), [2]string{"v1#shop#9B6gJjY2SBKd2zYnHKU9aIR9qLV7AOy51CJPYSPtHCk", "1d126f79f151d3628cd9c35d19a377c64aaf6c5ade9638fd934d5a6bab350e9c"}},
		"by route":     {held(tenant, func(o *Options) { o.ScopeRoute = true }), [2]string{"v1#shop#s5LZchzgc15ytoxE357jFiIul8itjabdRRI7knldc_4", "1d126f79f151d3628cd9c35d19a377c64aaf6c5ade9638fd934d5a6bab350e9c"}},
		"JSON":         {held(base(), func(o *Options) { o.Fingerprint.CanonicalJSON = true }), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "5ada354ce0aea53d3eaf88e3ced49c96432b09a24ec2cbe4b2c638957ab94a0c"}},
		"a header":     {held(base(), func(o *Options) { o.Fingerprint.Headers = []string{"Stripe-Account"} }), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "b1b5a7f30b8aff468bb825b84be0be45278ac71cf71d64262c96da313cedb431"}},
		"a secret":     {held(base(), func(o *Options) { o.Fingerprint.Secrets = []Secret{{"1", []byte("0123456789abcdef")}} }), [2]string{"v1#shop#xw37kVJE0CcpGy6zoVKOcmDkUrv2n4Xgc2DbMnPH-Sc", "9119afeeb5022b74ac85a655cdf576fdc3ff2f958112bbc6ea1b1ae9873171cb"}},
		"ACP":          {held(base(), ACP), [2]string{"v1#shop#zZFMssbpbD5O0WhHuMC08Qi6X_w9NfHgOya3sbQDZiE", "046da987fb01009e810a6876d16fe50f9fe43fe2676b3c92f419ff9f037a189a"}},
		"UCP":          {held(base(), UCP), [2]string{"v1#shop#zZFMssbpbD5O0WhHuMC08Qi6X_w9NfHgOya3sbQDZiE", "3330d7e69107f656de71834ecd6afe2fbba1256425c31283952c01642825f8c7"}},
	} {
		if tc.got != tc.want {
			t.Errorf("%q: {%q, %q}", name, tc.got[0], tc.got[1])
		}
	}
	if got, want := sentHash("operation", []byte("{}")), "b513242dc3e78196df001a4e63f80d29"; got != want {
		t.Errorf("the data of a call: %s", got)
	}
	body := `[0, -0.0, -12.50, 1e2, 1e-3, 99999999999999999999e99999999999999999999, 10e99999999999999999999, 1e-12345678901234567890]`
	if got, err := exactJSON([]byte(body)); err != nil || string(got) != "[0,0,-125e-1,1e2,1e-3,99999999999999999999e99999999999999999999,1e100000000000000000000,1e-12345678901234567890]" {
		t.Errorf("the form of numbers: %s, %v", got, err)
	}
}
