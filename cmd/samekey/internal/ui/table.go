package ui

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/store"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/seal"
)

// TableOptions are the settings of [NewTable].
type TableOptions struct {
	By        string // the operator's name; the page proposes this name for each decision
	Place     string // the table's name and place, shown in the question before each decision
	Namespace string // default namespace of the page's searches by key
	// Seal opens sealed contents. If Seal is nil, or can't get the data key, the page
	// says why the contents are missing.
	Seal *seal.Sealer
	// Changes implements [Source.Follow]. If Changes is nil, Follow returns
	// ErrNoStream.
	Changes func(ctx context.Context, started func(), changed func(pks []string)) error
	// PagesPerSecond limits scans of a table that isn't local. The default is 20. At
	// this rate, a scan of records of 1 KB uses up to 2,600 read units a second.
	PagesPerSecond float64
}

// Table is a DynamoDB table as a [Source].
type Table struct {
	client *dynamodb.Client
	store  *dynamo.Store
	about  About
	opt    TableOptions
	sweep  *stream.Sweep
}

var _ Source = (*Table)(nil)

// NewTable returns the table with this name as a [Source].
func NewTable(client *dynamodb.Client, name string, opt TableOptions) (*Table, error) {
	o := client.Options()
	about := About{Table: name, Region: o.Region, By: opt.By}
	if o.BaseEndpoint != nil {
		about.Endpoint, about.Local = *o.BaseEndpoint, onThisMachine(*o.BaseEndpoint)
	}
	if opt.PagesPerSecond <= 0 {
		opt.PagesPerSecond = 20
	}
	if about.Local {
		opt.PagesPerSecond = 1000
	}
	client = patient(client)
	records, err := dynamo.New(client, name, func(o *dynamo.Options) { o.Seal = opt.Seal })
	if err != nil {
		return nil, err
	}
	return &Table{client: client, store: records, about: about, opt: opt, sweep: stream.NewSweep(client, records, func(o *stream.SweepOptions) {
		o.Segments, o.PagesPerSecond = 4, opt.PagesPerSecond
	})}, nil
}

// patient returns a client with long timeouts, because a page of a scan may take long,
// and a person can wait longer than a function.
func patient(client *dynamodb.Client) *dynamodb.Client {
	return dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.Logger = logging.Nop{}
		if c, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = c.WithTimeout(time.Minute)
		}
	})
}

// onThisMachine reports whether an endpoint is on this machine.
func onThisMachine(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	return u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
}

// About implements [Source].
func (t *Table) About() About { return t.about }

// Size implements [Source]. AWS updates the size only about every six hours.
func (t *Table) Size(ctx context.Context) (Size, error) {
	out, err := t.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &t.about.Table})
	if err != nil {
		return Size{}, t.said(err)
	}
	return Size{Items: aws.ToInt64(out.Table.ItemCount), Bytes: aws.ToInt64(out.Table.TableSizeBytes)}, nil
}

// Browse implements [Source].
func (t *Table) Browse(ctx context.Context, see func([]Row, Progress)) error {
	return t.said(t.sweep.Browse(ctx, func(page []stream.Glimpse, b stream.Browsed) {
		rows := make([]Row, len(page))
		for i, g := range page {
			rows[i] = rowOf(g)
		}
		see(rows, Progress{Scanned: b.Scanned, Units: b.Units})
	}))
}

// Row implements [Source].
func (t *Table) Row(ctx context.Context, pk string) (Row, bool, error) {
	rec, _, err := t.load(ctx, pk)
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return Row{PK: pk, Name: shortName(pk), Reasons: []string{string(state.ReasonUnreadable)}, Error: err.Error()}, true, nil
	case err != nil:
		return Row{}, false, t.said(err)
	case rec == nil:
		return Row{}, false, nil
	}
	return rowOf(t.sweep.Glimpse(rec)), true, nil
}

// Follow implements [Source].
func (t *Table) Follow(ctx context.Context, started func(), changed func(pks []string)) error {
	if t.opt.Changes == nil {
		return ErrNoStream
	}
	return t.opt.Changes(ctx, started, changed)
}

func rowOf(g stream.Glimpse) Row {
	row := Row{PK: g.PK, Name: g.Name}
	for _, e := range g.Entries {
		if why := string(e.Reason); !slices.Contains(row.Reasons, why) {
			row.Reasons = append(row.Reasons, why)
		}
		if row.Error == "" {
			row.Error = e.LastErr
		}
	}
	r := g.Record
	if r == nil {
		row.Error = g.Err.Error()
		return row
	}
	row.State, row.Route, row.Handler, row.Tries, row.Jobs = string(r.State), r.Route, r.Handler.Name, r.Tries, len(r.Jobs)
	row.Created, row.Run, row.Lease = milli(r.Created), milli(r.Run), milli(r.Lease)
	row.Caller = r.Scope
	if n := len(r.Phases); n > 0 {
		row.Phase, row.Took = r.Phases[n-1].Name, r.Phases[n-1].At.Milliseconds()
	}
	if r.Response != nil {
		row.Status = r.Response.Status
	}
	if row.Error == "" && r.State != store.Done {
		row.Error = r.LastErr
	}
	return row
}

// Waiting implements [Source].
func (t *Table) Waiting(ctx context.Context, most int) (rows []Row, err error) {
	at := make(map[string]int) // each record's index in rows
	for e, err := range stream.NewWaiting(t.client, t.store).All(ctx) {
		switch {
		case errors.Is(err, stream.ErrNoIndex):
			return nil, ErrNoQuery
		case err != nil:
			return nil, t.said(err)
		case len(rows) == most:
			return rows, nil
		}
		row := Row{
			PK: e.PK, Name: e.Record, Reasons: []string{string(e.Reason)}, Route: e.Route, Handler: e.Handler, Phase: e.Phase, Tries: e.Tries,
			Error: e.LastErr, Created: milli(e.Created), Run: milli(e.Run),
		}
		switch {
		case e.Reason == state.ReasonUnknown, e.Reason == state.ReasonStuck:
			row.State = string(store.Stuck)
		case e.Reason == state.ReasonBlocked && e.ID != "":
			row.State = string(store.Open)
		default: // the entry doesn't show the record's state
		}
		if i, known := at[e.PK]; known { // the record already has a row
			// An entry with an ID comes from the record itself. Such an entry has more data,
			// so it replaces the row.
			if e.ID == "" {
				rows[i].Reasons = append(rows[i].Reasons, row.Reasons...)
			} else {
				row.Reasons = append(row.Reasons, rows[i].Reasons...)
				rows[i] = row
			}
			continue
		}
		at[e.PK] = len(rows)
		rows = append(rows, row)
	}
	return rows, nil
}

func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Table.said turns an error of AWS into an error whose text the page can show.
func (t *Table) said(err error) error {
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); missing {
		return fmt.Errorf("no table %s in this account and Region", t.about.Table)
	}
	return err
}
