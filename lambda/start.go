package lambda

import awslambda "github.com/aws/aws-lambda-go/lambda"

// Start hands h to the Lambda runtime and does not return: it serves one event
// after the other until the sandbox ends. It stands here so that a main needs
// this package only; h may be any handler of aws-lambda-go.
//
// The options are the runtime's, such as awslambda.WithEnableSIGTERM. Those on
// JSON don't touch what [Wrap] returns, which reads and writes its own.
func Start(h awslambda.Handler, opts ...awslambda.Option) {
	awslambda.StartWithOptions(h, opts...)
}
