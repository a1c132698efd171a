//go:build unix

package killsweep_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/examples/rides"
	"github.com/samekey/samekey/examples/rides/world"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/base/defaults"
	"github.com/samekey/samekey/internal/local/eventsource"
	"github.com/samekey/samekey/internal/local/sam/ridestest"
	"github.com/samekey/samekey/internal/servers/lambdarun"
	"github.com/samekey/samekey/internal/servers/mendstream"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/completer"
	"github.com/samekey/samekey/lambda/sink"
	"github.com/samekey/samekey/lambda/worker"
)

const (
	template = "../../template.yaml"
	pkgs     = "github.com/samekey/samekey/examples/rides/cmd/"

	margin = defaults.MinLeaseMargin
	grace  = 100 * time.Millisecond
)

// timeout is the time of an invocation. A process is believed dead timeout and margin after
// it got its work.
const timeout = 8 * time.Second

// backstage is what all runs share: the tables, and what works behind the API.
type backstage struct {
	db                    *dynamotest.DB
	client                *dynamodb.Client
	store                 *dynamo.Store
	records, rides, audit string
	bootstrap             string
	mails                 world.World

	mu   sync.Mutex
	runs map[string]*run // by the keys of their records
}

// openBackstage makes the tables and runs the worker in the test's process.
func openBackstage(t *testing.T) *backstage {
	t.Helper()
	b, arn := newBackstage(t)
	b.startWorker(t, arn)
	return b
}

// newBackstage makes the tables. Nothing reads the stream of the records yet.
func newBackstage(t *testing.T) (b *backstage, arn string) {
	t.Helper()
	db := dynamotest.Start(t)
	name := rand.Text()
	b = &backstage{
		db: db, client: db.Client(), records: "records-" + name, rides: "rides-" + name, audit: "audit-" + name,
		bootstrap: filepath.Join(t.TempDir(), "bootstrap"), runs: make(map[string]*run),
	}
	if err := lambdarun.BuildBootstrap(t.Context(), pkgs+"rides", b.bootstrap); err != nil {
		t.Fatal(err)
	}
	arn = b.createTable(t, dynamo.CreateTableInput(b.records))
	b.createTable(t, byID(b.rides))
	b.createTable(t, byID(b.audit))
	var err error
	if b.store, err = dynamo.New(db.Client(dynamo.Tune), b.records); err != nil {
		t.Fatal(err)
	}
	return b, arn
}

func (b *backstage) createTable(t *testing.T, in *dynamodb.CreateTableInput) (arn string) {
	t.Helper()
	if _, err := b.client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	wait := dynamodb.NewTableExistsWaiter(b.client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond })
	out, err := wait.WaitForOutput(t.Context(), &dynamodb.DescribeTableInput{TableName: in.TableName}, 10*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return aws.ToString(out.Table.LatestStreamArn)
}

func byID(table string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:            &table,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		BillingMode:          types.BillingModePayPerRequest,
	}
}

// receipts is what the function Receipts does.
func (b *backstage) receipts(t *testing.T) lambdarun.Invoker {
	t.Helper()
	srv := httptest.NewServer(b.mails.Handler())
	t.Cleanup(srv.Close)
	return lambda.WrapEach(rides.Engine(b.store, rides.ReceiptsNamespace, quiet), lambda.SQS, (&rides.Mails{URL: srv.URL}).Receive)
}

// startWorker starts what the functions Worker and Receipts do. The worker invokes
// the function of the run that a ticket is of, if the run has no client any more.
func (b *backstage) startWorker(t *testing.T, arn string) {
	t.Helper()
	receipts, later := newQueue(t, b.receipts(t)), &queue{}
	w := worker.New(b.client, b.store, completer.NewQueue(later, "https://tickets"), func(o *worker.Options) {
		o.Sink = jobs.Route{rides.ReceiptJob: sink.NewQueue(receipts, "https://receipts")}
		o.Functions = byRun{b}
		o.Grace = grace
	})
	later.start(t, w)
	b.startStream(t, arn, w)
}

func (b *backstage) startStream(t *testing.T, arn string, h lambdarun.Invoker) {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	m, err := eventsource.Stream{
		Function: lambdarun.InProcess(h, patience), ARN: arn, ReportBatchItemFailures: true, Filters: ridestest.Filters(t, template),
		API: dynamodbstreams.New(dynamodbstreams.Options{
			BaseEndpoint: &b.db.Endpoint, Region: "us-east-1", HTTPClient: &http.Client{Transport: mendstream.Transport(base)},
			Credentials: b.db.Client().Options().Credentials,
		}),
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
}

func quiet(o *idem.Options) { o.Hooks, o.Logger = idem.Hooks{}, nil }

// byRun hands a ticket to the function of the run it is of.
type byRun struct{ *backstage }

func (b byRun) Resume(ctx context.Context, t jobs.Ticket) completer.TicketOutcome {
	if !strings.HasPrefix(t.PK, "v1#"+rides.RidesNamespace+"#") { // a receipt: its queue repeats it
		return completer.TicketOutcome{Kind: completer.TicketDone}
	}
	b.mu.Lock()
	r := b.runs[t.PK]
	b.mu.Unlock()
	if r == nil || r.end == retried {
		return completer.TicketOutcome{Kind: completer.TicketMoved} // it has a client
	}
	return completer.Invoke(invoker{r.function}, "rides").Resume(ctx, t)
}

// invoker is Lambda's Invoke API over a local function.
type invoker struct{ *lambdarun.Function }

func (i invoker) Invoke(ctx context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	out, err := i.Function.Invoke(ctx, in.Payload)
	return &awslambda.InvokeOutput{Payload: out}, err
}

func (b *backstage) scan(t *testing.T, table string, out any) {
	t.Helper()
	var items []map[string]types.AttributeValue
	pages := dynamodb.NewScanPaginator(b.client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		for try := 0; err != nil && try < 2; try++ { // the client has no retries, and this is no part of the run
			page, err = pages.NextPage(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, page.Items...)
	}
	if err := attributevalue.UnmarshalListOfMaps(items, out); err != nil {
		t.Fatal(err)
	}
}
