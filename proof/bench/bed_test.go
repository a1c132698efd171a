package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/idemtest"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/itemsize"
)

// bed is a fresh table of records and one of a user's items. Neither has a stream:
// DynamoDB Local gets slower with a stream's history.
type bed struct {
	table, app string
	meter      *meter
	client     *dynamodb.Client // its calls count
	direct     *dynamodb.Client // its calls don't
	store      *dynamo.Store
	now        time.Time // the engine's clock: sizes of numbers don't depend on the day
}

func newBed(ctx context.Context, db *dynamotest.DB) (*bed, error) {
	name := "bench-" + rand.Text()
	b := &bed{
		table: name, app: name + "-app", direct: db.Client(dynamo.Tune),
		now: time.Date(2026, time.January, 2, 3, 4, 5, 678e6, time.UTC),
	}
	records := dynamo.CreateTableInput(b.table)
	records.StreamSpecification = nil
	items := &dynamodb.CreateTableInput{
		TableName: &b.app, BillingMode: types.BillingModePayPerRequest,
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS}},
	}
	for _, in := range []*dynamodb.CreateTableInput{records, items} {
		if _, err := b.direct.CreateTable(ctx, in); err != nil {
			return nil, err
		}
		waiter := dynamodb.NewTableExistsWaiter(b.direct, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond })
		if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: in.TableName}, 5*time.Minute); err != nil {
			return nil, err
		}
	}
	b.meter = &meter{
		direct: b.direct, records: b.table,
		keys:    map[string]string{b.table: *records.KeySchema[0].AttributeName, b.app: "id"},
		indexes: map[string]types.GlobalSecondaryIndex{b.table: records.GlobalSecondaryIndexes[0]},
	}
	b.meter.reset()
	b.client = db.Client(dynamo.Tune, b.meter.meterCalls)
	var err error
	b.store, err = dynamo.New(b.client, b.table)
	return b, err
}

// engine returns an engine on the bed's clock.
func (b *bed) engine(optFns ...func(*idem.Options)) *idem.Engine {
	return b.engineOn(b.store, optFns...)
}

func (b *bed) engineOn(s store.Store, optFns ...func(*idem.Options)) *idem.Engine {
	unhurried := func(o *idem.Options) {
		o.Lease, o.Function, o.Logger, o.Now = 150*time.Second, "rides", quiet, func() time.Time { return b.now }
	}
	return idem.New(s, append([]func(*idem.Options){unhurried}, optFns...)...)
}

// items returns all items of the records' table.
func (b *bed) items(ctx context.Context) (all []item, _ error) {
	pages := dynamodb.NewScanPaginator(b.direct, &dynamodb.ScanInput{TableName: &b.table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
	}
	return all, nil
}

// atRest is the size of all items of the records' table, in bytes. The companions of a
// request end by the real clock: they count with a time of the bed's, since a time that
// ends in zeros is a byte shorter.
func (b *bed) atRest(ctx context.Context) (size int, _ error) {
	all, err := b.items(ctx)
	for _, it := range all {
		if it["st"] == nil && it["exp_s"] != nil {
			it["exp_s"] = &types.AttributeValueMemberN{Value: strconv.FormatInt(b.now.Unix(), 10)}
		}
		size += itemsize.Of(it)
	}
	return size, err
}

// record returns the only record.
func (b *bed) record(ctx context.Context) (*store.Record, error) {
	all, err := b.items(ctx)
	if err != nil {
		return nil, err
	}
	var found *store.Record
	for _, it := range all {
		pk, ok := it["pk"].(*types.AttributeValueMemberS)
		if !ok || it["st"] == nil {
			continue // a companion
		}
		if found != nil {
			return nil, errors.New("the table has more than one record")
		}
		if found, err = b.store.Load(ctx, pk.Value); err != nil {
			return nil, err
		}
	}
	if found == nil {
		return nil, errors.New("the table has no record")
	}
	return found, nil
}

// abandon claims req and dies: the record stays held.
func (b *bed) abandon(ctx context.Context, req idem.Request, optFns ...func(*idem.Options)) error {
	process, ran := idemtest.Faulty(b.store, nil), false
	_, err := b.engineOn(process, optFns...).Do(ctx, req, func(context.Context) (idem.Response, error) {
		ran = true
		process.Crash()
		return idem.Response{}, errors.New("killed")
	})
	if !ran || err == nil {
		return fmt.Errorf("the abandoned attempt got %w", err)
	}
	return nil
}

// post is a POST of an order with a key.
func post(key, body string) idem.Request {
	return idem.Request{
		Key: key, Identity: idem.Identity{Kind: "jwt", Subject: "3f0e2b1c-5f6a-4a7b-9c8d-0e1f2a3b4c5d"}, Method: http.MethodPost, Path: "/orders", Route: "POST /orders", Body: []byte(body),
	}
}

// created is the answer to a POST.
func created(body string) idem.Response {
	return idem.Response{
		Status: http.StatusCreated,
		Header: http.Header{"Content-Type": {"application/json"}, "Location": {"/orders/1"}},
		Body:   []byte(body),
	}
}

func creates(body string) func(context.Context) (idem.Response, error) {
	answer := created(body)
	return func(context.Context) (idem.Response, error) { return answer, nil }
}

// order is a JSON answer of n bytes, with lines that are alike, as answers are.
func order(n int) string {
	r := mathrand.New(mathrand.NewPCG(1, uint64(n)))
	var b strings.Builder
	b.WriteString(`{"id":"order-1","currency":"usd","lines":[`)
	for {
		line := fmt.Sprintf(`{"sku":"%08x","quantity":%d,"amount":%d},`, r.Uint32(), 1+r.IntN(9), r.IntN(10000))
		if b.Len()+len(line) > n-len(`],"note":""}`) {
			break
		}
		b.WriteString(line)
	}
	s := strings.TrimSuffix(b.String(), ",") + `],"note":"`
	return s + strings.Repeat("x", max(0, n-len(s)-2)) + `"}`
}

// noise is n bytes that don't compress.
func noise(n int) string {
	r := mathrand.New(mathrand.NewPCG(2, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}
