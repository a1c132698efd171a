package apigateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/internal/servers/apigateway"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// A front over a handler in this process. With a *Function from Start in its
// place, the same requests reach a built bootstrap.
func ExampleHTTPAPI() {
	hello := func(_ context.Context, req events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
		who := req.RequestContext.Authorizer.JWT.Claims["sub"]
		return events.APIGatewayV2HTTPResponse{StatusCode: http.StatusCreated, Body: "hello, " + who}, nil
	}
	fn := lambdarun.InProcess(awslambda.NewHandler(hello), 10*time.Second)
	defer func() { _ = fn.Close() }()

	api := apigateway.HTTPAPI(fn, func(o *apigateway.HTTPAPIOptions) {
		o.Routes = []string{"POST /hello"}
		o.Authorizer = func(r *http.Request) (*apigateway.Identity, error) {
			subject, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
			if !ok {
				return nil, errors.New("no token")
			}
			return apigateway.JWT(map[string]string{"sub": subject}), nil
		}
	})

	for _, token := range []string{"", "Bearer ann"} {
		req := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/hello", nil)
		req.Header.Set("Authorization", token)
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, req)
		fmt.Println(rec.Code, rec.Body)
	}
	// Output:
	// 401 {"message":"Unauthorized"}
	// 201 hello, ann
}
