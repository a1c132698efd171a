// Command samekey-worker is the background function of a table. It does what the
// program of the same name in module github.com/samekey/samekey does, and also opens
// sealed args of jobs by AWS KMS. It has two more variables, as kms.FromEnvironment
// reads them:
//
//	SAMEKEY_KMS_KEYS         ARNs of the keys, the current key first; if not set, jobs
//	                         with sealed args wait
//	SAMEKEY_KMS_CONTEXT      the encryption context; default table=NAME
//
// Its role needs kms:Decrypt on the keys. It seals nothing.
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
		return nil, err // not a typed nil
	}
	return provider, nil
}
