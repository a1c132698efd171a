package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/samekey/samekey/dynamo"
)

// request is a request to the provider, as the invocation of its function.
type request struct{ Path, Key, Body string }

// invoker sends requests to the provider's function.
type invoker struct {
	client   *lambda.Client
	function string
}

func newInvoker(function string) *invoker {
	o := lambda.Options{Region: os.Getenv("AWS_REGION"), Credentials: credentials(), RetryMaxAttempts: 1, BaseEndpoint: aws.String(os.Getenv("AWS_ENDPOINT_URL_LAMBDA"))}
	return &invoker{lambda.New(o), function}
}

// RoundTrip implements [http.RoundTripper].
func (i *invoker) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(request{r.URL.Path, r.Header.Get("Idempotency-Key"), string(body)})
	if err != nil {
		return nil, err
	}
	out, err := i.client.Invoke(r.Context(), &lambda.InvokeInput{FunctionName: &i.function, Payload: payload})
	if err != nil {
		return nil, err
	}
	if out.FunctionError != nil {
		return nil, errors.New("the provider failed: " + string(out.Payload))
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(out.Payload)), Request: r,
	}, nil
}

func serveProvider() {
	client, err := dynamo.NewClient()
	if err != nil {
		log.Fatal(err)
	}
	p := &provider{client, os.Getenv("PROVE_TABLE")}
	awslambda.Start(p.take)
}

// provider charges once for each key, and sends a mail once for each job.
type provider struct {
	db    *dynamodb.Client
	table string
}

func (p *provider) take(ctx context.Context, r request) (map[string]any, error) {
	var in struct {
		Description string `json:"description"`
		RideID      string `json:"ride_id"`
		JobID       string `json:"job_id"`
	}
	if err := json.Unmarshal([]byte(r.Body), &in); err != nil {
		return nil, err
	}
	id, about := "charge#"+r.Key, in.Description
	if r.Path == "/v1/mails" {
		id, about = "mail#"+in.JobID, in.RideID
	}
	if r.Key == "" && in.JobID == "" {
		return nil, fmt.Errorf("%s has no key", r.Path)
	}
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	out, err := p.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &p.table, Key: map[string]types.AttributeValue{"id": text(id)},
		UpdateExpression: aws.String("SET made = if_not_exists(made, :made), about = if_not_exists(about, :about), body = if_not_exists(body, :body) ADD calls :one"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":made": text("ch_" + rand.Text()), ":about": text(about), ":body": text(r.Body), ":one": &types.AttributeValueMemberN{Value: "1"},
		},
		ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return nil, err
	}
	made, ok1 := out.Attributes["made"].(*types.AttributeValueMemberS)
	body, ok2 := out.Attributes["body"].(*types.AttributeValueMemberS)
	if !ok1 || !ok2 || body.Value != r.Body {
		return nil, errors.New("the key is another request's")
	}
	return map[string]any{"id": made.Value}, nil
}
