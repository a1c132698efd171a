package recipes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/lambda"
)

const (
	balancer = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:loadbalancer/app/shop/50dc6c495c0c9188"
	kid      = "8e03978e-40d5-43e8-bc93-6894a57f9324"
)

type claims = map[string]any

// signed is a token as a load balancer makes it: padded, with raw signatures.
func signed(t *testing.T, key *ecdsa.PrivateKey, head, body claims) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.URLEncoding.EncodeToString(text)
	}
	text := part(head) + "." + part(body)
	digest := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + base64.URLEncoding.EncodeToString(signature)
}

// keyServer publishes a key as AWS does, on 127.0.0.1.
func keyServer(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/"+kid {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/"
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The users of a load balancer's login are callers; who can't show a token that it has
// signed is nobody, whatever the other headers say.
func TestUsersOfALoadBalancer(t *testing.T) {
	t.Parallel()
	store := new(idem.MemoryStore)
	users := NewOIDC("arn:aws:elasticloadbalancing:eu-central-1:123456789012:loadbalancer/app/shop/50dc6c495c0c9188")
	engine := idem.New(store, func(o *idem.Options) { o.Scope = users.Scope })

	key, now := newKey(t), time.Now()
	if users.Keys != "https://public-keys.auth.elb.eu-central-1.amazonaws.com/" {
		t.Errorf("the keys are at %s", users.Keys)
	}
	users.Keys, users.Now = keyServer(t, key), func() time.Time { return now }
	runs := 0
	h := lambda.Wrap(engine, lambda.ALB, func(context.Context, events.ALBTargetGroupRequest) (events.ALBTargetGroupResponse, error) {
		runs++
		return events.ALBTargetGroupResponse{StatusCode: 201, Body: string(rune('0' + runs))}, nil
	})
	head := func(change claims) claims {
		all := claims{"alg": "ES256", "kid": kid, "signer": balancer, "iss": "https://id.example", "client": "c", "exp": now.Add(time.Minute).Unix()}
		maps.Copy(all, change)
		return all
	}
	send := func(token string) (int, string) {
		ev := events.ALBTargetGroupRequest{HTTPMethod: "POST", Path: "/orders", Headers: map[string]string{
			"idempotency-key": "k", "x-amzn-oidc-data": token, "x-amzn-oidc-identity": "jane",
		}}
		ev.RequestContext.ELB.TargetGroupArn = "arn:aws:elasticloadbalancing:x"
		re, err := h.Handle(t.Context(), ev)
		if err != nil {
			t.Fatal(err)
		}
		return re.StatusCode, re.Body
	}
	jane, omar := claims{"sub": "jane"}, claims{"sub": "omar"}
	for i, tt := range []struct {
		token, body string
	}{
		{signed(t, key, head(nil), jane), "1"},
		{signed(t, key, head(nil), omar), "2"},
		{signed(t, key, head(claims{"exp": now.Add(time.Hour).Unix()}), claims{"sub": "jane", "email": "new"}), "1"}, // a token made anew
		{signed(t, key, head(claims{"iss": "https://other.example"}), jane), "3"},
	} {
		if status, body := send(tt.token); status != 201 || body != tt.body {
			t.Errorf("token %d: %d %s, want %s", i, status, body, tt.body)
		}
	}
	good := signed(t, key, head(nil), jane)
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"none": "", "no token": "jane", "another's key": signed(t, newKey(t), head(nil), jane), "another load balancer's": signed(t, key, head(claims{"signer": balancer + "x"}), jane),
		"expired": signed(t, key, head(claims{"exp": now.Unix()}), jane), "of no algorithm": signed(t, key, head(claims{"alg": "none"}), jane),
		"an unknown key": signed(t, key, head(claims{"kid": "00000000-0000-0000-0000-000000000000"}), jane), "a path for a key": signed(t, key, head(claims{"kid": "../x"}), jane),
		"other claims": parts[0] + "." + base64.URLEncoding.EncodeToString([]byte(`{"sub":"omar"}`)) + "." + parts[2], "no signature": parts[0] + "." + parts[1] + ".",
		"of nobody": signed(t, key, head(nil), claims{"email": "jane"}), "of no issuer": signed(t, key, head(claims{"iss": ""}), jane),
	} {
		if status, body := send(token); status != 500 || !strings.Contains(body, "scope_unknown") {
			t.Errorf("%s: %d %s, want 500 scope_unknown", name, status, body)
		}
	}
	if runs != 3 {
		t.Errorf("%d runs, want 3", runs)
	}
}
