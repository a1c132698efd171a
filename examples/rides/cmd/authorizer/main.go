// Command authorizer is the API's Lambda authorizer: it tells who sends a
// bearer token.
package main

import (
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/examples/rides"
)

func main() { awslambda.Start(rides.Authorize) }
