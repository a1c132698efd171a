package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/dynamo"
)

// newClient is a client for the account that AWS's own tools would use here: by
// the environment, by profiles with SSO, roles and programs, or by the machine's
// role. It fails, and says what to set, where there is no region or no account.
func newClient(ctx context.Context) (*dynamodb.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Region == "" {
		return nil, errors.New("no region: set AWS_REGION or AWS_DEFAULT_REGION, or give the profile in AWS_PROFILE a region")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, fmt.Errorf("no credentials: set AWS_PROFILE (and log in, if it uses SSO: aws sso login), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %w", err)
	}
	return dynamodb.NewFromConfig(cfg, dynamo.Tune), nil
}
