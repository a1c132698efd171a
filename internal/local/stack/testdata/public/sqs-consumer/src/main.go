// Command src logs messages.
package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
)

func main() {
	awslambda.Start(func(_ context.Context, ev events.SQSEvent) (events.SQSEventResponse, error) {
		for _, m := range ev.Records {
			fmt.Println("message:", m.Body)
		}
		return events.SQSEventResponse{}, nil
	})
}
