// Package maketable makes the table of records as samekey.yaml does, and adds to an
// existing table what it lacks.
package maketable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/samekey/samekey/dynamo"
)

// Options are the choices that the template has too. Table is required.
type Options struct {
	Table         string
	NoTTL         bool  // DynamoDB Local deletes within a second
	NoRecovery    bool  // point-in-time recovery
	NoProtection  bool  // deletion protection
	MaxWriteUnits int64 // a second; 0 = no limit
	// Patience is how long to wait until a change is made. Default 15 minutes: an index
	// of a large table takes its time.
	Patience time.Duration
}

// Step is a change of the table.
type Step struct {
	What string
	do   func(context.Context) (string, error) // what was left out, and why
}

// Plan is what a table lacks.
type Plan struct {
	Exists bool
	Steps  []Step
	// Never are the differences that can't be mended by a change: the table has to be
	// made anew, or readers would lose their place.
	Never []string
}

type maker struct {
	api *dynamodb.Client
	opt Options
}

// Make looks at the table, and returns what it lacks. Nothing is changed.
func Make(ctx context.Context, api *dynamodb.Client, opt Options) (*Plan, error) {
	if opt.Patience == 0 {
		opt.Patience = 15 * time.Minute
	}
	m := maker{api, opt}
	got, err := api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &opt.Table})
	if _, none := errors.AsType[*types.ResourceNotFoundException](err); none {
		return m.fresh(), nil
	}
	if err != nil {
		return nil, err
	}
	return m.existing(ctx, got.Table)
}

// Run makes the changes in order, and tells each by said.
func (p *Plan) Run(ctx context.Context, said func(string)) error {
	for _, s := range p.Steps {
		skipped, err := s.do(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", s.What, err)
		case skipped != "":
			said(s.What + ": left out: " + skipped)
		default:
			said(s.What)
		}
	}
	return nil
}

func (m maker) fresh() *Plan {
	in := dynamo.CreateTableInput(m.opt.Table)
	in.DeletionProtectionEnabled = aws.Bool(!m.opt.NoProtection)
	in.SSESpecification = &types.SSESpecification{Enabled: aws.Bool(true)} // by the key that AWS manages, as the template
	if n := m.opt.MaxWriteUnits; n > 0 {
		in.OnDemandThroughput = &types.OnDemandThroughput{MaxWriteRequestUnits: &n}
	}
	p := &Plan{Steps: []Step{{describe(in), func(ctx context.Context) (string, error) {
		if _, err := m.api.CreateTable(ctx, in); err != nil {
			return "", err
		}
		return "", m.wait(ctx)
	}}}}
	if !m.opt.NoTTL {
		p.Steps = append(p.Steps, m.ttl())
	}
	if !m.opt.NoRecovery {
		p.Steps = append(p.Steps, m.recovery())
	}
	return p
}

func describe(in *dynamodb.CreateTableInput) string {
	parts := []string{"partition key " + aws.ToString(in.KeySchema[0].AttributeName), "on demand", "stream " + string(in.StreamSpecification.StreamViewType)}
	for _, g := range in.GlobalSecondaryIndexes {
		parts = append(parts, "index "+aws.ToString(g.IndexName))
	}
	if in.SSESpecification != nil {
		parts = append(parts, "encrypted by AWS's managed key")
	}
	if aws.ToBool(in.DeletionProtectionEnabled) {
		parts = append(parts, "deletion protection")
	}
	if t := in.OnDemandThroughput; t != nil {
		parts = append(parts, fmt.Sprintf("at most %d write units a second", aws.ToInt64(t.MaxWriteRequestUnits)))
	}
	return fmt.Sprintf("create the table %s: %s", aws.ToString(in.TableName), strings.Join(parts, ", "))
}

// existing compares a table with the definition.
func (m maker) existing(ctx context.Context, got *types.TableDescription) (*Plan, error) {
	want, p := dynamo.CreateTableInput(m.opt.Table), &Plan{Exists: true}
	never := func(format string, args ...any) { p.Never = append(p.Never, fmt.Sprintf(format, args...)) }
	if keys(got.KeySchema, got.AttributeDefinitions) != keys(want.KeySchema, want.AttributeDefinitions) {
		never("its key is %s, and has to be %s: make another table", keys(got.KeySchema, got.AttributeDefinitions), keys(want.KeySchema, want.AttributeDefinitions))
		return p, nil // it is another table altogether
	}
	switch s := got.StreamSpecification; {
	case s == nil || !aws.ToBool(s.StreamEnabled):
		p.Steps = append(p.Steps, m.update("turn on the stream "+string(want.StreamSpecification.StreamViewType),
			&dynamodb.UpdateTableInput{StreamSpecification: want.StreamSpecification}))
	case s.StreamViewType != want.StreamSpecification.StreamViewType:
		never("its stream shows %s, and has to show %s: turn it off and on again by hand, and point its readers to the new stream", s.StreamViewType, want.StreamSpecification.StreamViewType)
	}
	for _, w := range want.GlobalSecondaryIndexes {
		i := slices.IndexFunc(got.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool {
			return aws.ToString(g.IndexName) == aws.ToString(w.IndexName)
		})
		switch {
		case i < 0:
			p.Steps = append(p.Steps, m.update("add the index "+aws.ToString(w.IndexName), index(w, want.AttributeDefinitions)))
		case keys(got.GlobalSecondaryIndexes[i].KeySchema, got.AttributeDefinitions) != keys(w.KeySchema, want.AttributeDefinitions):
			never("the index %s has another key: delete it by hand, and run this again", aws.ToString(w.IndexName))
		}
	}
	if !m.opt.NoProtection && !aws.ToBool(got.DeletionProtectionEnabled) {
		p.Steps = append(p.Steps, m.update("turn on deletion protection", &dynamodb.UpdateTableInput{DeletionProtectionEnabled: aws.Bool(true)}))
	}
	return p, m.rest(ctx, p, never)
}

// rest compares what has calls of its own.
func (m maker) rest(ctx context.Context, p *Plan, never func(string, ...any)) error {
	ttl, err := m.api.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &m.opt.Table})
	if err != nil {
		return err
	}
	want := dynamo.TimeToLiveInput(m.opt.Table).TimeToLiveSpecification
	on := ttl.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusEnabled || ttl.TimeToLiveDescription.TimeToLiveStatus == types.TimeToLiveStatusEnabling
	switch {
	case on && aws.ToString(ttl.TimeToLiveDescription.AttributeName) != aws.ToString(want.AttributeName):
		never("its TTL is on %s, and has to be on %s: turn it off by hand, and run this again an hour later", aws.ToString(ttl.TimeToLiveDescription.AttributeName), aws.ToString(want.AttributeName))
	case !on && !m.opt.NoTTL:
		p.Steps = append(p.Steps, m.ttl())
	}
	if m.opt.NoRecovery {
		return nil
	}
	backups, err := m.api.DescribeContinuousBackups(ctx, &dynamodb.DescribeContinuousBackupsInput{TableName: &m.opt.Table})
	switch {
	case unknown(err): // a local database has none
	case err != nil:
		return err
	case backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription == nil ||
		backups.ContinuousBackupsDescription.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusEnabled:
		p.Steps = append(p.Steps, m.recovery())
	}
	return nil
}

func keys(schema []types.KeySchemaElement, defs []types.AttributeDefinition) string {
	all := make([]string, 0, len(schema))
	for _, k := range schema {
		t := ""
		for _, d := range defs {
			if aws.ToString(d.AttributeName) == aws.ToString(k.AttributeName) {
				t = string(d.AttributeType)
			}
		}
		all = append(all, fmt.Sprintf("%s %s (%s)", aws.ToString(k.AttributeName), k.KeyType, t))
	}
	return strings.Join(all, ", ")
}

func index(w types.GlobalSecondaryIndex, defs []types.AttributeDefinition) *dynamodb.UpdateTableInput {
	return &dynamodb.UpdateTableInput{
		AttributeDefinitions: defs,
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: w.IndexName, KeySchema: w.KeySchema, Projection: w.Projection,
		}}},
	}
}

func (m maker) update(what string, in *dynamodb.UpdateTableInput) Step {
	in.TableName = &m.opt.Table
	return Step{what, func(ctx context.Context) (string, error) {
		if _, err := m.api.UpdateTable(ctx, in); err != nil {
			return "", err
		}
		return "", m.wait(ctx)
	}}
}

func (m maker) ttl() Step {
	in := dynamo.TimeToLiveInput(m.opt.Table)
	return Step{"turn on TTL on " + aws.ToString(in.TimeToLiveSpecification.AttributeName), func(ctx context.Context) (string, error) {
		_, err := m.api.UpdateTimeToLive(ctx, in)
		return "", err
	}}
}

func (m maker) recovery() Step {
	return Step{"turn on point-in-time recovery", func(ctx context.Context) (string, error) {
		_, err := m.api.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
			TableName: &m.opt.Table, PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
		})
		if unknown(err) {
			return "this database has none", nil
		}
		return "", err
	}}
}

// unknown reports whether a database doesn't know an operation, as DynamoDB Local.
func unknown(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "UnknownOperationException"
}

// wait returns when the table and its indexes are active.
func (m maker) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.opt.Patience)
	defer cancel()
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		out, err := m.api.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &m.opt.Table})
		if _, none := errors.AsType[*types.ResourceNotFoundException](err); err != nil && !none {
			return err
		}
		if err == nil && active(out.Table) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it is still under way; run this again later: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
}

func active(t *types.TableDescription) bool {
	return t.TableStatus == types.TableStatusActive && !slices.ContainsFunc(t.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool {
		return g.IndexStatus != types.IndexStatusActive && g.IndexStatus != "" // some stand-ins tell none
	})
}
