package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/spf13/cobra"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/dynamo/stream"
	"github.com/samekey/samekey/idem"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/idem/store"
)

func newStuck(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "stuck", Short: "List and settle what waits for people", DisableFlagParsing: true, Annotations: map[string]string{annotationExits: "  0  done\n  1  failed\n  2  called the wrong way"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := runStuck(cmd.Context(), env, args); code != 0 {
				return exitWith(code, nil)
			}
			return nil
		},
	}
}

const stuckUsage = `usage: samekey stuck list    [FLAGS]
       samekey stuck show    [FLAGS] PK
       samekey stuck retry   [FLAGS] PK
       samekey stuck answer  [FLAGS] PK
       samekey stuck redrive [FLAGS] PK [JOB...]

list     scans the table slowly, and prints everything that is left undone
show     prints one record; its data only with -data
retry    lets a stuck operation be tried again
answer   ends a stuck or abandoned operation with an answer, which its client gets
         from now on
redrive  hands parked jobs out again: all of the record's, or those named

PK is an entry's partition key, as list prints it. See docs/jobs.md.

What can't be undone is shown and asked about; -yes is for scripts. Who decided
what, and when, stays in the record, and show prints it.

Environment: IDEM_TABLE, for -table; USER, for -by; what AWS's own tools read, such
as AWS_PROFILE and AWS_REGION, for the account; AWS_ENDPOINT_URL_DYNAMODB, for a
local database.

Flags:
`

// stuckOptions are the flags of all sub-commands.
type stuckOptions struct {
	table string

	json             bool // list
	max              int
	pages            float64
	grace, retention time.Duration // list, and retention for answer
	data             bool          // show
	result           string        // retry
	notMade          bool
	riskTwice        bool
	status           int // answer
	body, bodyFile   string
	contentType      string
	tombstone        time.Duration
	by               string // retry and answer
	yes              bool

	args []string
}

// operator does what people ask for on one table.
type stuckDesk struct {
	env    environment
	client *dynamodb.Client
	store  *dynamo.Store
	opt    stuckOptions
}

// stuckVerbs are the sub-commands: how many arguments they take at least and at
// most, and what they do.
var stuckVerbs = map[string]struct {
	least, most int
	do          func(*stuckDesk, context.Context) error
}{
	"list":    {0, 0, (*stuckDesk).list},
	"show":    {1, 1, (*stuckDesk).show},
	"retry":   {1, 1, (*stuckDesk).retry},
	"answer":  {1, 1, (*stuckDesk).answer},
	"redrive": {1, 1 + 50, (*stuckDesk).redrive},
}

func runStuck(ctx context.Context, env environment, args []string) int {
	opt, fs := stuckOptions{}, stuckFlags(env)
	opt.register(fs, env)
	if len(args) == 0 {
		fs.Usage()
		return 2
	}
	verb, known := stuckVerbs[args[0]]
	if !known {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			return 0
		}
		fmt.Fprintf(env.stderr, "samekey stuck: there is no command %s\n", args[0])
		return 2
	}
	if err := fs.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	opt.args = fs.Args()
	if n := len(opt.args); n < verb.least || n > verb.most {
		fmt.Fprintf(env.stderr, "samekey stuck %s: %d arguments after the flags; samekey stuck -h tells what it takes\n", args[0], n)
		return 2
	}
	op, err := newStuckDesk(ctx, env, opt)
	if err != nil {
		fmt.Fprintf(env.stderr, "samekey stuck: %v\n", err)
		return 2
	}
	if err := verb.do(op, ctx); err != nil {
		fmt.Fprintf(env.stderr, "samekey stuck %s: %v\n", args[0], err)
		return 1
	}
	return 0
}

func stuckFlags(env environment) *flag.FlagSet {
	fs := flag.NewFlagSet("samekey stuck", flag.ContinueOnError)
	fs.SetOutput(env.stderr)
	fs.Usage = func() {
		fmt.Fprint(env.stderr, stuckUsage)
		fs.PrintDefaults()
	}
	return fs
}

func (o *stuckOptions) register(fs *flag.FlagSet, env environment) {
	fs.StringVar(&o.table, "table", env.getenv("IDEM_TABLE"), "the `TABLE` of the records")
	fs.BoolVar(&o.json, "json", false, "list: print the report as JSON")
	fs.IntVar(&o.max, "max", 1000, "list: the most entries to print; all are counted")
	fs.Float64Var(&o.pages, "pages", 4, "list: pages a second; a page of 500 records of 1 KB takes 64 read units")
	fs.DurationVar(&o.grace, "grace", jobs.DefaultGrace, "list: the completer's grace")
	fs.DurationVar(&o.retention, "retention", idem.DefaultRetention, "answer: for how long it is replayed; that of the function")
	fs.DurationVar(&o.tombstone, "tombstone", 0, "answer: for how long after that the key says expired; that of the function")
	fs.BoolVar(&o.data, "data", false, "show: with results of phases, args of jobs, the request and the answer, which may be personal")
	fs.StringVar(&o.result, "result", "", "retry: what the call with an unknown outcome came to, as `JSON`")
	fs.BoolVar(&o.notMade, "not-made", false, "retry: the call with an unknown outcome was not made")
	fs.BoolVar(&o.riskTwice, "risk-twice", false, "retry: make the call with an unknown outcome again, though it may then happen twice")
	fs.StringVar(&o.by, "by", cmp.Or(env.getenv("USER"), env.getenv("USERNAME")), "retry, answer: `WHO` decides, for the record")
	fs.BoolVar(&o.yes, "yes", false, "retry, answer: don't ask")
	fs.IntVar(&o.status, "status", 0, "answer: its HTTP status")
	fs.StringVar(&o.body, "body", "", "answer: its body")
	fs.StringVar(&o.bodyFile, "body-file", "", "answer: a `FILE` with its body")
	fs.StringVar(&o.contentType, "content-type", "application/json", "answer: its Content-Type")
}

func newStuckDesk(ctx context.Context, env environment, opt stuckOptions) (*stuckDesk, error) {
	if opt.table == "" {
		return nil, errors.New("which table? Set -table or IDEM_TABLE")
	}
	client, err := newClient(ctx)
	if err != nil {
		return nil, err
	}
	store, err := dynamo.New(client, opt.table)
	if err != nil {
		return nil, err
	}
	return &stuckDesk{env, client, store, opt}, nil
}

// engine is one for the namespace of the record pk, which has to be there.
func (op *stuckDesk) engine(ctx context.Context, pk string) (*idem.Engine, *store.Record, error) {
	switch {
	case op.opt.retention < idem.MinRetention || op.opt.tombstone < 0:
		return nil, nil, fmt.Errorf("-retention is at least %v, -tombstone not negative", idem.MinRetention)
	case op.opt.by == "":
		return nil, nil, errors.New("who decides? Set -by or USER; it stays in the record")
	}
	rec, err := op.load(ctx, pk)
	if err != nil {
		return nil, nil, err
	}
	return idem.New(op.store, func(o *idem.Options) {
		o.Namespace, o.Retention, o.Tombstone = strings.Split(pk, "#")[1], op.opt.retention, op.opt.tombstone
		o.Logger = slog.New(slog.DiscardHandler) // what it would say is returned
	}), rec, nil
}

func (op *stuckDesk) load(ctx context.Context, pk string) (*store.Record, error) {
	if strings.Count(pk, "#") != 2 {
		return nil, fmt.Errorf("%q is not the partition key of a record: v1#NAMESPACE#HASH", pk)
	}
	rec, err := op.store.Load(ctx, pk)
	if err == nil && rec == nil {
		err = fmt.Errorf("there is no record %s", pk)
	}
	return rec, err
}

func (op *stuckDesk) redrive(ctx context.Context) error {
	pk, jobs := op.opt.args[0], slices.Clone(op.opt.args[1:])
	rec, err := op.load(ctx, pk)
	if err != nil {
		return err
	}
	for i, id := range jobs {
		parts := strings.Split(id, ".")
		if len(parts) != 3 { // its number alone: of the operation that is there
			continue
		}
		if parts[0] != rec.ID {
			return fmt.Errorf("%s is of another operation: that of the record is %s", id, rec.ID)
		}
		jobs[i] = parts[1] + "." + parts[2]
	}
	n, err := stream.Redrive(ctx, op.store, pk, rec.ID, jobs...)
	switch {
	case err != nil:
		return err
	case n == 0:
		return errors.New("no such job is parked in it")
	}
	fmt.Fprintf(op.env.stdout, "%d handed out again: the drain sees them in the stream\n", n)
	return nil
}
