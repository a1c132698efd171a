package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// authorize names the caller in "sub". Each caller's keys belong to that caller only.
func authorize(_ context.Context, ev events.APIGatewayV2CustomAuthorizerV2Request) (events.APIGatewayV2CustomAuthorizerSimpleResponse, error) {
	if len(ev.IdentitySource) > 0 {
		scheme, token, _ := strings.Cut(ev.IdentitySource[0], " ")
		if name := caller(token); name != "" && strings.EqualFold(scheme, "Bearer") {
			return events.APIGatewayV2CustomAuthorizerSimpleResponse{IsAuthorized: true, Context: map[string]any{"sub": name}}, nil
		}
	}
	// this error makes the gateway answer 401; isAuthorized = false would be 403
	return events.APIGatewayV2CustomAuthorizerSimpleResponse{}, errors.New("Unauthorized")
}

// caller returns the owner of a token. TOKENS holds pairs NAME:TOKEN. caller returns "" for
// an unknown token.
func caller(token string) (found string) {
	for pair := range strings.FieldsSeq(os.Getenv("TOKENS")) {
		name, secret, _ := strings.Cut(pair, ":")
		if secret != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(token)) == 1 {
			found = name
		}
	}
	return found
}
