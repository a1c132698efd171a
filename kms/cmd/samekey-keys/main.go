// Command samekey-keys gets data keys from AWS KMS for the command samekey, which runs
// samekey-keys:
//
//	samekey get REF --data --keys-from samekey-keys
//
// samekey-keys reads the environment variables that kms.FromEnvironment explains. The
// command samekey sets one of these, IDEM_TABLE, to its own table. Region and
// credentials come from AWS's environment variables and config files. samekey passes
// --region and --profile on as AWS_REGION and AWS_PROFILE. The user of samekey needs
// kms:Decrypt on the keys, and also kms:GenerateDataKey to store an answer in a record
// that isn't sealed yet.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/aws/aws-sdk-go-v2/config"
	awskms "github.com/aws/aws-sdk-go-v2/service/kms"

	"github.com/samekey/samekey/kms"
	"github.com/samekey/samekey/seal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "samekey-keys:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return program.Refuse(out, err)
	}
	provider, err := kms.FromEnvironment(awskms.NewFromConfig(cfg), os.Getenv)
	if err != nil {
		return program.Refuse(out, err)
	}
	return program.Serve(ctx, provider, in, out)
}
