// Command samekey-worker is the background function of a table. It does the same work
// as github.com/samekey/samekey/cmd/samekey-worker, and also opens sealed args of jobs
// with AWS KMS. It has two more environment variables, which kms.FromEnvironment
// explains:
//
//	SAMEKEY_KMS_KEYS         ARNs of the keys, the current key first; if not set, jobs
//	                         with sealed args wait
//	SAMEKEY_KMS_CONTEXT      the encryption context; default table=NAME
//
// The worker's role needs kms:Decrypt on the keys. The worker seals nothing.
package main

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/samekey/samekey/internal/background/readyworker"
	"github.com/samekey/samekey/kms"
	"github.com/samekey/samekey/seal"
)

func main() { readyworker.Main(keys) }

func keys(sdk func(service string) aws.Config, getenv func(string) string) (seal.Provider, error) {
	provider, err := kms.FromEnvironment(awskms.NewFromConfig(sdk("KMS")), getenv)
	if err != nil {
		return nil, err // not provider: a nil *Provider makes an interface that isn't nil
	}
	return provider, nil
}
