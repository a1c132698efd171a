// Command fn is every function of the tests' template. The variable ROLE says what the
// function does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

func main() {
	handlers := map[string]any{
		"api": api, "authorizer": authorizer, "rest": rest, "stream": stream, "worker": worker, "timer": timer, "flaky": flaky, "tenant": tenant,
	}
	fmt.Println("started as", os.Getenv("ROLE"))
	awslambda.Start(handlers[os.Getenv("ROLE")])
}

// credentials are those of the environment, as an SDK finds them.
func credentials(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: os.Getenv("AWS_ACCESS_KEY_ID"), SecretAccessKey: os.Getenv("AWS_SECRET_ACCESS_KEY")}, nil
}

func put(ctx context.Context, pk, value string) error {
	db := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")), Region: os.Getenv("AWS_REGION"),
		Credentials: aws.CredentialsProviderFunc(credentials),
	})
	_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(os.Getenv("TABLE")), Item: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: pk}, "value": &types.AttributeValueMemberS{Value: value},
		"empty": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
	}})
	return err
}

// authorizer takes any token that begins with "user-".
func authorizer(_ context.Context, ev events.APIGatewayV2CustomAuthorizerV2Request) (events.APIGatewayV2CustomAuthorizerSimpleResponse, error) {
	user, ok := strings.CutPrefix(ev.Headers["authorization"], "Bearer ")
	if !ok {
		return events.APIGatewayV2CustomAuthorizerSimpleResponse{}, errors.New("Unauthorized") //nolint:staticcheck // API Gateway wants it so
	}
	return events.APIGatewayV2CustomAuthorizerSimpleResponse{
		IsAuthorized: strings.HasPrefix(user, "user-"), Context: map[string]any{"sub": user},
	}, nil
}

// api writes an item for POST, hangs for /slow, and answers GET /env with its environment.
// For GET /aws it calls AWS itself.
func api(ctx context.Context, ev events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	switch ev.RouteKey {
	case "GET /env":
		env := make(map[string]string)
		for _, kv := range os.Environ() {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		body, err := json.Marshal(env)
		return events.APIGatewayV2HTTPResponse{StatusCode: 200, Body: string(body)}, err
	case "GET /aws":
		resp, err := http.Get("https://sns.us-east-1.amazonaws.com/")
		if err == nil {
			err = errors.Join(errors.New(resp.Status), resp.Body.Close())
		}
		return events.APIGatewayV2HTTPResponse{StatusCode: 502, Body: err.Error()}, nil
	case "GET /slow":
		<-time.After(time.Hour)
	}
	who := ev.RequestContext.Authorizer.Lambda["sub"].(string)
	err := put(ctx, "item#"+ev.Body, who)
	return events.APIGatewayV2HTTPResponse{StatusCode: 201, Body: who}, err
}

// rest returns what a REST API says about a request.
func rest(_ context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(ev.Headers)) {
		if strings.HasPrefix(strings.ToLower(name), "x-test") {
			names = append(names, name)
		}
	}
	body, err := json.Marshal(map[string]any{
		"resource": ev.Resource, "path": ev.Path, "whole": ev.RequestContext.Path, "parameters": ev.PathParameters, "headers": names,
	})
	return events.APIGatewayProxyResponse{StatusCode: 200, Body: string(body)}, err
}

// stream sends the key of each new item to the queue, and fails at the item "poison".
func stream(ctx context.Context, ev events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_SQS")), Region: os.Getenv("AWS_REGION"),
		Credentials: aws.CredentialsProviderFunc(credentials),
	})
	var out events.DynamoDBEventResponse
	for _, r := range ev.Records {
		pk := r.Change.Keys["pk"].String()
		if empty := r.Change.NewImage["empty"]; empty.DataType() != events.DataTypeMap {
			return out, errors.New("the empty map has become something else")
		}
		err := errors.New("poison")
		if pk != "item#poison" {
			_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(os.Getenv("QUEUE")), MessageBody: &pk})
		}
		if err != nil {
			fmt.Println("stream:", pk, err)
			out.BatchItemFailures = append(out.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: r.Change.SequenceNumber})
			break
		}
	}
	return out, nil
}

// worker writes down each message from the queue.
func worker(ctx context.Context, ev events.SQSEvent) error {
	for _, m := range ev.Records {
		if err := put(ctx, "done#"+m.Body, m.EventSource); err != nil {
			return err
		}
	}
	return nil
}

// timer invokes the function that its environment names: once it waits for the answer, and
// once it doesn't.
func timer(ctx context.Context) error {
	client := lambda.New(lambda.Options{
		BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_LAMBDA")), Region: os.Getenv("AWS_REGION"),
		Credentials: aws.CredentialsProviderFunc(credentials),
	})
	for _, kind := range []lambdatypes.InvocationType{lambdatypes.InvocationTypeRequestResponse, lambdatypes.InvocationTypeEvent} {
		out, err := client.Invoke(ctx, &lambda.InvokeInput{
			FunctionName: aws.String(os.Getenv("TARGET")), InvocationType: kind, Payload: []byte(`{"mark":"` + string(kind) + `"}`),
		})
		if err != nil {
			return err
		}
		if out.FunctionError != nil {
			return fmt.Errorf("%s: %s", *out.FunctionError, out.Payload)
		}
	}
	return nil
}

// flaky writes its mark if it has one, or fails if the event says so.
func flaky(ctx context.Context, ev struct {
	Mark string `json:"mark"`
	Fail string `json:"fail"`
},
) (string, error) {
	if ev.Fail != "" {
		return "", errors.New(ev.Fail)
	}
	if ev.Mark == "" {
		return "hello", nil
	}
	return "hello " + ev.Mark, put(ctx, "mark#"+ev.Mark, "flaky")
}

// tenant returns the tenant of the invocation, and the process.
func tenant(ctx context.Context) (string, error) {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return "", errors.New("no Lambda context")
	}
	if os.Getenv("MARK") != "" {
		return "", os.WriteFile(os.Getenv("MARK"), []byte(lc.TenantID), 0o600)
	}
	return fmt.Sprint(lc.TenantID, " in ", os.Getpid()), nil
}
