package rides

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// User is somebody who can book rides.
type User struct {
	Email    string
	Customer string // id of the customer at the payment provider
}

// findUser finds one of two fixed users. A real app would have a table of users,
// which the authorizer reads.
func findUser(email string) (User, bool) {
	switch email {
	case "jane@example.com":
		return User{Email: email, Customer: "cus_jane"}, true
	case "omar@example.com":
		return User{Email: email, Customer: "cus_omar"}, true
	}
	return User{}, false
}

// userOf returns the user whom the authorizer has identified.
func userOf(ev request) (User, bool) {
	if a := ev.RequestContext.Authorizer; a != nil {
		sub, _ := a.Lambda["sub"].(string)
		return findUser(sub)
	}
	return User{}, false
}

// Authorize is the API's Lambda authorizer: it identifies the user of a bearer token. The
// token is the user's address, so the token is not secure.
//
// The authorizer's context names the user in "sub". That name becomes the scope of the
// user's keys: the same key of two users is two operations. A refused request never reaches
// a key.
func Authorize(_ context.Context, ev events.APIGatewayV2CustomAuthorizerV2Request) (events.APIGatewayV2CustomAuthorizerSimpleResponse, error) {
	if len(ev.IdentitySource) > 0 {
		scheme, token, _ := strings.Cut(ev.IdentitySource[0], " ")
		if user, ok := findUser(token); ok && strings.EqualFold(scheme, "Bearer") {
			return events.APIGatewayV2CustomAuthorizerSimpleResponse{IsAuthorized: true, Context: map[string]any{"sub": user.Email}}, nil
		}
	}
	// this error makes the gateway answer 401; isAuthorized = false would be 403
	return events.APIGatewayV2CustomAuthorizerSimpleResponse{}, errors.New("Unauthorized")
}
