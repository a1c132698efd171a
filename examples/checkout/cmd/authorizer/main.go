// Command authorizer is the API's Lambda authorizer: it identifies the sender of a bearer
// token. It is for the first day only. Replace it by your own authorizer: a JWT authorizer,
// Cognito, IAM.
package main

import awslambda "github.com/aws/aws-lambda-go/lambda"

func main() { awslambda.Start(authorize) }
