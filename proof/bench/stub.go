package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/internal/testkit/streamimage"
)

// stubAPI takes every write, or refuses every claim. Updates return items, by key.
type stubAPI struct {
	dynamo.API
	refusal error
	items   map[string]item
}

func (s stubAPI) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return nil, s.refusal
}

func (s stubAPI) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if s.items == nil {
		return nil, nil
	}
	return &dynamodb.UpdateItemOutput{Attributes: s.items[pkOf(in.Key)]}, nil
}

// recorder remembers the writes that it passes on.
type recorder struct {
	dynamo.API
	mu      sync.Mutex
	put     *dynamodb.PutItemInput
	updates []*dynamodb.UpdateItemInput
}

func (r *recorder) PutItem(ctx context.Context, in *dynamodb.PutItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	r.put = in
	return r.API.PutItem(ctx, in, optFns...)
}

func (r *recorder) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, optFns ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	r.mu.Lock()
	r.updates = append(r.updates, in)
	r.mu.Unlock()
	return r.API.UpdateItem(ctx, in, optFns...)
}

// stubClient is a real client whose requests go nowhere: each gets the same answer.
func stubClient(status int, body string, optFns ...func(*dynamodb.Options)) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1",
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	}, append(optFns, func(o *dynamodb.Options) {
		o.HTTPClient = stubTransport{status, body}
		o.DisableValidateResponseChecksum = true
	})...)
}

type stubTransport struct {
	status int
	body   string
}

func (s stubTransport) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return &http.Response{
		Status: strconv.Itoa(s.status), StatusCode: s.status, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:          io.NopCloser(strings.NewReader(s.body)),
		ContentLength: int64(len(s.body)),
	}, nil
}

// refusal is the service's answer to a write that the item it has refused.
func refusal(it item) (string, error) {
	b, err := json.Marshal(map[string]any{
		"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "message": "The conditional request failed", "Item": streamimage.Of(it),
	})
	return string(b), err
}
