package stack

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/local/sam"
	"github.com/samekey/samekey/internal/servers/apigateway"
)

func token(t *testing.T, claims map[string]any) string {
	t.Helper()
	data, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(data) + ".sig"
}

func TestJWTAuthorizer(t *testing.T) {
	t.Parallel()
	def := sam.JWT{Issuer: "https://issuer", Audience: []string{"rides", "other"}, Scopes: []string{"write", "admin"}, HeaderKey: "Authorization"}
	claims := func(change map[string]any) string {
		all := map[string]any{"iss": "https://issuer", "aud": "rides", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "scope": "read write"}
		for name, v := range change {
			if all[name] = v; v == nil {
				delete(all, name)
			}
		}
		return "Bearer " + token(t, all)
	}
	past := time.Now().Add(-time.Minute).Unix()
	for name, tt := range map[string]struct {
		header    string
		forbidden bool
		ok        bool
	}{
		"good":             {header: claims(nil), ok: true},
		"client_id":        {header: claims(map[string]any{"aud": nil, "client_id": "rides"}), ok: true},
		"no header":        {header: ""},
		"another issuer":   {header: claims(map[string]any{"iss": "x"})},
		"another audience": {header: claims(map[string]any{"aud": "x"})},
		"expired":          {header: claims(map[string]any{"exp": past})},
		"without end":      {header: claims(map[string]any{"exp": nil})},
		"no scope":         {header: claims(map[string]any{"scope": "read"}), forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			req.Header.Set("Authorization", tt.header)
			identity, err := jwtAuthorizer(def)(req)
			if (err == nil) != tt.ok || errors.Is(err, apigateway.ErrForbidden) != tt.forbidden {
				t.Fatalf("error %v", err)
			}
			if tt.ok && identity.JWT.Claims["sub"] != "ann" {
				t.Errorf("identity is %+v", identity.JWT)
			}
		})
	}
}

func TestClaimsAreTexts(t *testing.T) {
	t.Parallel()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	exp := time.Now().Add(time.Hour).Unix()
	req.Header.Set("X-Token", token(t, map[string]any{
		"exp": exp, "cognito:groups": []string{"riders", "admins"}, "email_verified": true, "address": map[string]any{"a": 1}, "n": 12345678901234567,
	}))
	identity, err := jwtAuthorizer(sam.JWT{HeaderKey: "X-Token"})(req)
	if err != nil {
		t.Fatal(err)
	}
	got := identity.JWT.Claims
	delete(got, "exp")
	want := map[string]string{"cognito:groups": "[riders admins]", "email_verified": "true", "address": `{"a":1}`, "n": "12345678901234567"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
