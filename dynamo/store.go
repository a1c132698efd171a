package dynamo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/base/unnamed"
	"github.com/samekey/samekey/internal/item"
	"github.com/samekey/samekey/seal"
)

// API is the part of *dynamodb.Client that a Store uses.
type API interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)

	// Bodies over 390 KB are written and read in batches. If the role doesn't allow
	// batches, the store sends single items.
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	BatchWriteItem(context.Context, *dynamodb.BatchWriteItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchWriteItemOutput, error)
}

var (
	_ API              = (*dynamodb.Client)(nil)
	_ store.Store      = (*Store)(nil)
	_ store.BodyLoader = (*Store)(nil)
)

// Store keeps records in a DynamoDB table. It is safe for concurrent use.
type Store struct {
	api        API
	table      string
	inline     int
	region     string
	companions atomic.Int64 // how many companions this store has numbered; their keys contain the numbers
	unnamed    unnamed.Handlers
	noBatches  batches // which batched calls the role doesn't allow
	sealer     *seal.Sealer
}

// Options are a store's settings. [New] sets the defaults before it calls its optFns.
type Options struct {
	// Inline is the largest body, in bytes as stored, that is kept in the record
	// itself. A refused claim, such as a replay, costs write units for the whole
	// record's size, so a large body in the record makes replays more expensive. A body
	// outside of the record costs at least one more call and one more write unit when
	// it is stored, and costs reads only when it is needed. docs/operate/item.md says
	// when to change Inline. Inline is at least 1 byte and at most 64 KiB.
	// Default: 4 KiB.
	Inline int
	// Hooks report the store's calls, for metrics and traces.
	Hooks Hooks
	// Units asks DynamoDB for the capacity units of each call, for Hooks and for [idem.Summary].
	// Asking costs no capacity, but adds some bytes to each answer.
	Units bool

	// Seal encrypts the contents of records: requests, results, answers, scopes and jobs' args. If
	// no data key is available, a claim is refused, and nothing is written. nil: contents are
	// stored unencrypted, and sealed records can't be read ([store.ErrSealed]).
	Seal *seal.Sealer
}

const (
	defaultInline = 4 << 10
	maxInline     = 64 << 10
)

// tableName reports whether s can be the name or the ARN of a table. tableName uses no
// regular expression, because compiling one would take most of a cold start's time.
func tableName(s string) bool {
	name, arn := strings.CutPrefix(s, "arn:")
	odd := strings.ContainsFunc(name, func(c rune) bool {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		return !letter && !strings.ContainsRune("_.-", c) && (!arn || !strings.ContainsRune(":/", c))
	})
	return !odd && (arn && name != "" || !arn && len(s) >= 3 && len(s) <= 255)
}

// New returns a store that uses the named table. The table needs the layout of [CreateTableInput].
// New makes no calls: if the table is missing, the first request fails.
func New(api API, table string, optFns ...func(*Options)) (*Store, error) {
	opt := Options{Inline: defaultInline}
	for _, fn := range optFns {
		fn(&opt)
	}
	switch {
	case api == nil:
		return nil, errors.New("dynamo: New: api is nil; pass a client, for instance from NewClient")
	case table == "":
		return nil, errors.New("dynamo: New: table is empty; pass its name (is the function's environment variable set?)")
	case !tableName(table):
		return nil, fmt.Errorf("dynamo: New: %q is not the name or ARN of a table", table)
	case opt.Inline < 1 || opt.Inline > maxInline:
		return nil, fmt.Errorf("dynamo: New: Options.Inline is %d; 1 to %d will do", opt.Inline, maxInline)
	}
	return &Store{
		api: &watched{API: api, hooks: opt.Hooks, units: opt.Units}, table: table, inline: opt.Inline,
		region: os.Getenv("AWS_REGION"), sealer: opt.Seal,
	}, nil
}

// Load implements [store.Store] by a strongly consistent GetItem. If the contents of
// the record can't be opened, Load returns the record without its contents, and an
// error that matches [store.ErrSealed] or [store.ErrCorrupt].
func (s *Store) Load(ctx context.Context, pk string) (*store.Record, error) {
	r, err := s.Table().Load(ctx, pk)
	if err != nil || r == nil {
		return nil, err
	}
	return r, item.Unseal(ctx, s.sealer, r)
}

// AddUnnamed adds one unnamed handler to a group, such as a namespace, and returns how many unnamed
// handlers the group now has on this store. [idem.Engine.AddOperation] calls AddUnnamed.
func (s *Store) AddUnnamed(among string) int { return s.unnamed.Add(among) }

// Table returns the table for package internal/background/stream.
func (s *Store) Table() item.Table { return item.Table{Access: s.api, Name: s.table, Seal: s.sealer} }
