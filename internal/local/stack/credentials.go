package stack

import (
	"cmp"
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// localKey is both the access key and the secret of the dummy credentials. The services
// here check no credentials.
const localKey = "samekeylocal"

// identity holds the credentials of the functions and the stack's own clients.
type identity struct {
	region           string
	key, secret, tok string
}

// readIdentity returns the credentials in the environment, if the environment also
// names a database, since a DynamoDB Local may keep separate data for each access key
// and Region. In every other case, readIdentity returns dummy credentials.
func readIdentity() identity {
	id := identity{
		region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"),
		key:    localKey, secret: localKey,
	}
	if key := os.Getenv("AWS_ACCESS_KEY_ID"); key != "" && os.Getenv(envDynamoDB) != "" {
		id.key, id.secret, id.tok = key, os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")
	}
	return id
}

// Retrieve implements aws.CredentialsProvider.
func (id identity) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: id.key, SecretAccessKey: id.secret, SessionToken: id.tok, Source: "samekey local"}, nil
}

// identity.environ returns the environment variables from which SDKs read the identity.
func (id identity) environ() []string {
	env := []string{"AWS_REGION=" + id.region, "AWS_DEFAULT_REGION=" + id.region, "AWS_ACCESS_KEY_ID=" + id.key, "AWS_SECRET_ACCESS_KEY=" + id.secret}
	if id.tok != "" {
		env = append(env, "AWS_SESSION_TOKEN="+id.tok)
	}
	return env
}
