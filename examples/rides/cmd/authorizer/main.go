// Command authorizer is the API's Lambda authorizer: it finds the user of a
// bearer token.
package main

import (
	awslambda "github.com/aws/aws-lambda-go/lambda"

	"github.com/samekey/samekey/examples/rides"
)

func main() { awslambda.Start(rides.Authorize) }
