// Command samekey-keys gets data keys from AWS KMS for the command samekey, which runs
// samekey-keys:
//
//	samekey get REF --data --keys-from samekey-keys
//
// SAMEKEY_KMS_KEYS names the keys. IDEM_TABLE, or samekey's --table, names the table.
// kms.FromEnvironment explains both variables. Region and account come from AWS's environment and
// config files, or from samekey's --region and --profile. The caller needs kms:Decrypt on the
// keys. To settle an operation whose record is unsealed, the caller also needs
// kms:GenerateDataKey.
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
