package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/seal"
)

// account holds the flags of every command that calls AWS. Without these flags, the
// command uses the Region and credentials that AWS's own tools would use.
type account struct {
	env              environment
	region, profile  string
	endpoint         string
	sdk              aws.Config // set by open
	optionalEndpoint *string    // points to endpoint; nil if endpoint is empty
}

func (a *account) register(fs *pflag.FlagSet) {
	a.registerPlace(fs)
	fs.StringVar(&a.endpoint, "endpoint-url", "", "`URL` of DynamoDB, for a local database (default: AWS_ENDPOINT_URL_DYNAMODB)")
}

// registerPlace registers --region and --profile. Commands that don't call DynamoDB need
// only these two flags.
func (a *account) registerPlace(fs *pflag.FlagSet) {
	fs.StringVar(&a.region, "region", "", "AWS `REGION` (default: AWS_REGION, then the profile's Region)")
	fs.StringVar(&a.profile, "profile", "", "`PROFILE` of the AWS config files (default: AWS_PROFILE)")
}

// account.open finds Region and credentials in the environment, in profiles (with SSO, roles or
// credential_process), or by the machine's role. If Region or credentials are missing, open
// returns a usage error that says what to set.
func (a *account) open(ctx context.Context) error {
	// an empty Region or profile, or a nil client, has no effect
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(a.region), config.WithSharedConfigProfile(a.profile), config.WithHTTPClient(a.env.http))
	if err != nil {
		return wrongCall(err)
	}
	if cfg.Region == "" {
		return wrongCallf("no Region: set --region, AWS_REGION or AWS_DEFAULT_REGION, or add a region to the AWS profile")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return wrongCallf("no credentials: set --profile or AWS_PROFILE (with SSO, run aws sso login first), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %w", err)
	}
	if a.sdk = cfg; a.endpoint != "" {
		a.optionalEndpoint = &a.endpoint
	}
	return nil
}

// pageTimeout limits the time for one answer of DynamoDB. It is long because an answer (a page of a
// scan) may have 1 MB, and a person's connection may be slow.
const pageTimeout = time.Minute

// account.dynamodb returns a DynamoDB client. Call open first.
func (a *account) dynamodb() *dynamodb.Client {
	return dynamodb.NewFromConfig(a.sdk, dynamo.Tune, func(o *dynamodb.Options) {
		o.BaseEndpoint = cmp.Or(a.optionalEndpoint, o.BaseEndpoint)
		if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = client.WithTimeout(pageTimeout)
		}
		o.Logger = logging.Nop{} // log lines of the SDK would hide the command's output
	})
}

// operator holds the flags of commands on a table. After open it also holds the client
// and the store.
type operator struct {
	account
	table, namespace string
	json             bool
	flags            *pflag.FlagSet
	keysFrom         string // the program that has the data keys, with its arguments
	sealer           *seal.Sealer
	sealed           string // the reason why the contents of the last loaded record can't be opened

	client *dynamodb.Client
	store  *dynamo.Store
	about  *types.TableDescription // nil if AWS refused to describe the table
	place  string                  // the table's name and endpoint; without an endpoint, its name, Region and account
	unfit  string                  // the reason why the table can't have records; "" if it can
}

// newOperator registers the flags that all commands on a table have: --table,
// --namespace, --json and the flags of account.
func newOperator(env environment, fs *pflag.FlagSet) *operator {
	op := &operator{account: account{env: env}}
	fs.StringVar(&op.table, "table", env.getenv("IDEM_TABLE"), "`TABLE` with the records (default: IDEM_TABLE)")
	fs.StringVar(&op.namespace, "namespace", env.getenv("IDEM_NAMESPACE"), "`NAMESPACE` of the records, as in idem.Options (default: IDEM_NAMESPACE)")
	fs.BoolVar(&op.json, "json", false, "print JSON")
	op.flags = fs
	op.register(fs)
	return op
}

// operator.limited reports whether the command is limited to one namespace. The flag
// --namespace limits the command; the variable IDEM_NAMESPACE doesn't.
func (op *operator) limited() bool { return op.flags != nil && op.flags.Changed("namespace") }

// operator.open connects to the table, and prints the table's name and place.
func (op *operator) open(ctx context.Context) error {
	if err := op.connect(ctx); err != nil {
		return err
	}
	if err := op.tell(ctx); err != nil || op.unfit == "" {
		return err
	}
	return errors.New(op.unfit)
}

// operator.connect makes the clients. It sends no request to DynamoDB, but may send requests for
// credentials.
func (op *operator) connect(ctx context.Context) error {
	if op.table == "" {
		return wrongCallf("no table: set --table or IDEM_TABLE")
	}
	if err := op.account.open(ctx); err != nil {
		return err
	}
	op.client = op.dynamodb()
	if err := op.openKeys(); err != nil {
		return wrongCall(err)
	}
	store, err := dynamo.New(op.client, op.table, func(o *dynamo.Options) { o.Seal = op.sealer })
	if err != nil {
		return wrongCall(err)
	}
	op.store = store
	return nil
}

// change holds the flags of commands that change something.
type change struct {
	dryRun, yes bool
	by          string
}

func newChange(env environment, fs *pflag.FlagSet) *change {
	c := &change{}
	fs.BoolVar(&c.dryRun, "dry-run", false, "show the change without making it")
	fs.BoolVar(&c.yes, "yes", false, "skip the question")
	fs.StringVar(&c.by, "by", cmp.Or(env.getenv("USER"), env.getenv("USERNAME")), "`NAME` of the person who decides, stored in the record (default: USER)")
	return c
}

var errUnconfirmed = errors.New("not confirmed: nothing was changed (--yes skips the question)")

// change.agreed shows a change, and asks whether to make the change. It returns true after a yes
// or for --yes, false for --dry-run, and otherwise an error.
func (c *change) agreed(env environment, place string, what ...string) (bool, error) {
	for _, line := range append(what, "The change is in "+place+".") {
		env.note("%s", line)
	}
	switch {
	case c.dryRun:
		env.note("--dry-run: nothing was changed")
		return false, nil
	case c.yes:
		return true, nil
	case !agreed(env):
		return false, errUnconfirmed
	}
	return true, nil
}
