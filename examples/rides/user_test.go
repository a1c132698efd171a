package rides_test

import (
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/samekey/samekey/examples/rides"
)

func TestAuthorize(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		source []string
		user   string // "" for nobody
	}{
		{"jane", []string{"Bearer jane@example.com"}, jane},
		{"omar, in another case", []string{"bearer omar@example.com"}, omar},
		{"somebody else", []string{"Bearer eve@example.com"}, ""},
		{"another scheme", []string{"Basic jane@example.com"}, ""},
		{"no scheme", []string{"jane@example.com"}, ""},
		{"an empty token", []string{"Bearer "}, ""},
		{"nothing", nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := rides.Authorize(t.Context(), events.APIGatewayV2CustomAuthorizerV2Request{IdentitySource: tc.source})
			switch {
			case tc.user == "":
				// The message is what the gateway goes by: it answers 401.
				if err == nil || err.Error() != "Unauthorized" || got.IsAuthorized {
					t.Errorf("got %+v, %v; want Unauthorized", got, err)
				}
			case err != nil || !got.IsAuthorized || got.Context["sub"] != tc.user:
				t.Errorf("got %+v, %v; want %s", got, err, tc.user)
			}
		})
	}
}
