package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// newClient is a client for the account that AWS's own tools would use here.
func newClient(ctx context.Context) (*dynamodb.Client, error) {
	var a account
	if err := a.open(ctx); err != nil {
		return nil, err
	}
	return a.dynamodb(), nil
}
