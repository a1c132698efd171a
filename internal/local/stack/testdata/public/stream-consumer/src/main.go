// Command src logs changes of a table.
package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
)

func main() {
	awslambda.Start(func(_ context.Context, ev events.DynamoDBEvent) error {
		for _, r := range ev.Records {
			fmt.Println("change:", r.EventName, r.Change.Keys["id"].String())
		}
		return nil
	})
}
