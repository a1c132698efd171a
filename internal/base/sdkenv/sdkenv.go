// Package sdkenv makes the SDK's settings from the environment of a Lambda function. The
// SDK's config package isn't needed: a function has no config files and no profiles, and
// assumes no other role.
package sdkenv

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Config returns the settings for a client's NewFromConfig: Region, credentials,
// endpoint and kind of endpoint. The endpoint of the service DYNAMODB, for example, is
// AWS_ENDPOINT_URL_DYNAMODB, or AWS_ENDPOINT_URL if that variable is empty.
// AWS_USE_FIPS_ENDPOINT and AWS_USE_DUALSTACK_ENDPOINT set the endpoint's kind. They
// are true or false; an empty variable counts as false. Any other value is an error
// that names the variable. Region and credentials are empty if they are not set.
func Config(getenv func(string) string, service string) (aws.Config, error) {
	creds := aws.Credentials{
		AccessKeyID:     getenv("AWS_ACCESS_KEY_ID"),
		SecretAccessKey: getenv("AWS_SECRET_ACCESS_KEY"),
		SessionToken:    getenv("AWS_SESSION_TOKEN"),
		Source:          "environment",
	}
	cfg := aws.Config{
		Region: cmp.Or(getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return creds, nil // credentials of an execution role are fixed for the life of a sandbox
		}),
	}
	if url := cmp.Or(getenv("AWS_ENDPOINT_URL_"+service), getenv("AWS_ENDPOINT_URL")); url != "" {
		cfg.BaseEndpoint = &url
	}
	var kind endpoints
	var err error
	if kind.fips, err = isSet(getenv, "AWS_USE_FIPS_ENDPOINT"); err != nil {
		return aws.Config{}, err
	}
	if kind.dualStack, err = isSet(getenv, "AWS_USE_DUALSTACK_ENDPOINT"); err != nil {
		return aws.Config{}, err
	}
	if kind != (endpoints{}) {
		cfg.ConfigSources = []any{kind}
	}
	return cfg, nil
}

// isSet reads a variable whose value is true or false, as the SDK's config package does.
func isSet(getenv func(string) string, name string) (bool, error) {
	switch value := getenv(name); {
	case strings.EqualFold(value, "true"):
		return true, nil
	case value == "" || strings.EqualFold(value, "false"):
		return false, nil
	default:
		return false, fmt.Errorf("%s is %q: write true or false", name, value)
	}
}

// endpoints is a source of the SDK's settings, with the methods that each client's
// NewFromConfig looks for.
type endpoints struct{ fips, dualStack bool }

func (e endpoints) GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error) {
	return aws.FIPSEndpointStateEnabled, e.fips, nil
}

func (e endpoints) GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error) {
	return aws.DualStackEndpointStateEnabled, e.dualStack, nil
}
