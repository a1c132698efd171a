package lambda

import (
	"context"
	"errors"
	"testing"

	"github.com/samekey/samekey/idem"
)

// Each choice of a scope names the verified caller, and refuses a request without one.
func TestChosenScopes(t *testing.T) {
	t.Parallel()
	const sts = "arn:aws:sts::111122223333:"
	session := func(s string) *idem.Request { return &idem.Request{Facts: idem.Facts{Session: s}} }
	user := &idem.Request{Identity: idem.Identity{Kind: "iam", Subject: "arn:aws:iam::111122223333:user/ann"}}
	for name, tt := range map[string]struct {
		scope func(context.Context, *idem.Request) (string, error)
		in    *idem.Request
		want  string // "": refused
	}{
		"a role's session":                {RoleScope, session(sts + "assumed-role/shop/1"), "iam:" + sts + "assumed-role/shop"},
		"a session without a role's name": {RoleScope, session(sts + "assumed-role/1"), ""},
		"a session without a role":        {RoleScope, session(sts + "federated-user/a/b"), ""},
		"a user by role":                  {RoleScope, user, "iam:" + user.Identity.Subject},
		"a session itself":                {SessionScope, session(sts + "assumed-role/shop/1"), "iam:" + sts + "assumed-role/shop/1"},
		"a user by session":               {SessionScope, user, "iam:" + user.Identity.Subject},
		"another kind":                    {RoleScope, &idem.Request{Identity: idem.Identity{Kind: "jwt", Subject: "ann"}}, ""},
		"no name":                         {SessionScope, &idem.Request{Identity: idem.Identity{Kind: "iam"}}, ""},
		"an API key":                      {APIKeyScope, &idem.Request{Facts: idem.Facts{APIKey: "k"}}, "apikey:k"},
		"no API key":                      {APIKeyScope, &idem.Request{}, ""},
		"a certificate":                   {CertificateScope, &idem.Request{Facts: idem.Facts{Issuer: "ca", Certificate: "cn"}}, "certificate:" + join("ca", "cn")},
		"no certificate":                  {CertificateScope, &idem.Request{Facts: idem.Facts{Issuer: "ca"}}, ""},
	} {
		got, err := tt.scope(t.Context(), tt.in)
		if got != tt.want || errors.Is(err, idem.ErrScope) != (tt.want == "") || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
	if got := consumerScope(t.Context(), "topic"); got != "topic" {
		t.Errorf("outside of Lambda, a consumer's scope is %q", got)
	}
}
