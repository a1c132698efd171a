package main

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

func TestOnlyKnownTokensAreSomebodys(t *testing.T) {
	t.Setenv("TOKENS", "jane:tea omar:milk nobody:")
	for header, want := range map[string]string{
		"Bearer tea": "jane", "bearer milk": "omar", "Bearer jane": "", "Bearer ": "", "Bearer": "", "Basic tea": "", "": "",
	} {
		re, err := authorize(t.Context(), events.APIGatewayV2CustomAuthorizerV2Request{IdentitySource: []string{header}})
		if got, _ := re.Context["sub"].(string); got != want || re.IsAuthorized != (want != "") || (err == nil) != (want != "") {
			t.Errorf("%q: %q, authorized %t, %v; want %q", header, got, re.IsAuthorized, err, want)
		}
	}
}
