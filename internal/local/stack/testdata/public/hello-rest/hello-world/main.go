// Command hello-world answers a REST API.
package main

import (
	"context"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
)

func main() {
	awslambda.Start(func(_ context.Context, req events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
		return events.APIGatewayProxyResponse{StatusCode: 200, Body: "hello, " + req.HTTPMethod + " " + req.Resource}, nil
	})
}
