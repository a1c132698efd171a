// Command bare is the handler of examples/hello without Samekey: with the SDK's client of
// DynamoDB and two calls of it, as the wrapped handler makes. It is the measure for cold
// starts and sizes.
package main

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/examples/hello/greeting"
)

func main() {
	creds := aws.Credentials{
		AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
	}
	opt := dynamodb.Options{
		Region:      os.Getenv("AWS_REGION"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return creds, nil }),
	}
	if url := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"); url != "" {
		opt.BaseEndpoint = &url
	}
	app := &app{dynamodb.New(opt), os.Getenv("IDEM_TABLE")}
	awslambda.Start(app.hello)
}

type app struct {
	client *dynamodb.Client
	table  string
}

func (a *app) hello(ctx context.Context, req events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: req.Headers["idempotency-key"]}}
	if _, err := a.client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &a.table, Item: key}); err != nil {
		return events.APIGatewayV2HTTPResponse{}, err
	}
	res, err := greeting.Greeter{Log: os.Stderr}.Hello(ctx, req)
	if err != nil {
		return res, err
	}
	_, err = a.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &a.table, Key: key, UpdateExpression: aws.String("SET b = :b"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":b": &types.AttributeValueMemberS{Value: res.Body}},
	})
	return res, err
}
