package stack

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/samekey/samekey/internal/local/sam"
)

// startServices starts the database and the queue server at the same time, if the template
// needs them and they don't run yet. Then it makes the template's tables and queues.
func (s *Stack) startServices(ctx context.Context, t *sam.Template) error {
	tables, err := t.Tables()
	if err != nil {
		return err
	}
	queues, err := t.Queues()
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var dbErr, queueErr error
	if len(tables) > 0 && s.db == nil {
		s.say("starting a database for %d tables (the first time, DynamoDB Local is downloaded: 74 MB)", len(tables))
		wg.Go(func() { s.db, dbErr = openDatabase(ctx, s.id) })
	}
	if len(queues) > 0 && s.queues == nil {
		s.say("starting a queue server for %d queues", len(queues))
		wg.Go(func() { s.queues, queueErr = openQueues(ctx) })
	}
	wg.Wait()
	if err := errors.Join(dbErr, queueErr); err != nil {
		return err
	}
	for _, table := range tables {
		arn, stream, err := s.db.create(ctx, table, s.opts.TTL, s.log)
		if err != nil {
			return err
		}
		t.Set(table.ID, "Arn", arn)
		if stream != "" {
			t.Set(table.ID, "StreamArn", stream)
		}
	}
	if s.queues == nil {
		return nil
	}
	if d := s.opts.Overrides.FunctionTimeout; d != nil {
		defs, err := t.Functions()
		if err != nil {
			return err
		}
		scaleVisibility(queues, defs, *d)
	}
	if err := s.queues.createAll(ctx, queues); err != nil {
		return err
	}
	for id, q := range s.queues.made {
		t.Set(id, "", q.url)
		t.Set(id, "Arn", q.arn)
	}
	return nil
}

func (s *Stack) closeServices() error {
	var errs []error
	if s.queues != nil {
		errs = append(errs, s.queues.close())
	}
	if s.db != nil {
		errs = append(errs, s.db.close())
	}
	return errors.Join(errs...)
}

// tellServices puts the main table and the URLs of the database and the queue server into
// s.ready.
func (s *Stack) tellServices(t *sam.Template) error {
	tables, err := t.Tables()
	if err != nil {
		return err
	}
	if len(tables) > 0 {
		main := mainTable(tables)
		s.ready.Table = main.Name
		s.ready.Records = len(main.Key) == 1 && main.Key[0].Attribute == "pk"
	}
	if s.db != nil {
		s.ready.DynamoDB = s.db.url
	}
	if s.queues != nil {
		s.ready.SQS = s.queues.server.Endpoint
	}
	return nil
}

// mainTable chooses the table for the ready line. The list must not be empty.
func mainTable(tables []sam.Table) sam.Table {
	rank := func(t sam.Table) int {
		switch {
		case t.StreamView != "" && t.TTL != "":
			return 0
		case t.StreamView != "":
			return 1
		default:
			return 2
		}
	}
	return slices.MinFunc(tables, func(a, b sam.Table) int { return rank(a) - rank(b) })
}

// Stack.environ returns the stack's variables for functions and processes.
func (s *Stack) environ(lambdaURL string) []string {
	env := append(s.id.environ(), "AWS_ENDPOINT_URL="+lambdaURL, "AWS_ENDPOINT_URL_LAMBDA="+lambdaURL, "AWS_EC2_METADATA_DISABLED=true")
	if s.db != nil {
		env = append(env, s.db.environ()...)
	}
	if s.queues != nil {
		env = append(env, s.queues.environ()...)
	}
	return env
}
