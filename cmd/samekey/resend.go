package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/spf13/cobra"
)

func newResend(env environment) *cobra.Command {
	var function string
	cmd := &cobra.Command{
		Use:   "resend --function WORKER FILE...",
		Short: "Hand what the worker gave up, and the table no longer has, to it again",
		Long: `Reads objects of the stack's FailedBucket, FILEs or folders of them, which Lambda wrote
for batches of the stream that it gave up. What DynamoDB has removed from the table, and
only that, is handed to the worker again: it delivers the jobs, and reports what was
unfinished. The rest is in the table, where the sweep finds it. Jobs that were delivered
are delivered again, with the same ids.`,
		Args: takes(1, 10_000),
	}
	flags := cmd.Flags()
	place := account{env: env}
	place.registerPlace(flags)
	flags.StringVar(&function, "function", "", "the `WORKER`'s name or ARN: WorkerArn of the stack's outputs")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if function == "" {
			return wrongCallf("which worker? Set --function")
		}
		if err := place.open(cmd.Context()); err != nil {
			return err
		}
		env.note("function %s, Region %s", function, place.sdk.Region)
		r := resender{api: lambda.NewFromConfig(place.sdk), function: function}
		for _, at := range args {
			if err := r.all(cmd.Context(), at); err != nil {
				return err
			}
		}
		err := env.say("%d removed records of %d files were handed over, %d failed", r.sent, r.files, len(r.failed))
		return errors.Join(append([]error{err}, r.failed...)...)
	}
	return exitCodes(cmd, map[int]string{exitFailed: "failed, or the worker could not do all of it: the same command tries again"})
}

type resender struct {
	api         *lambda.Client
	function    string
	files, sent int
	failed      []error
}

// all resends a file, or those of a folder.
func (r *resender) all(ctx context.Context, at string) error {
	var paths []string
	err := filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		records, err := removed(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.files++
		for _, rec := range records {
			r.sent++
			if err := r.send(ctx, rec); err != nil {
				r.failed = append(r.failed, fmt.Errorf("%s: %w", path, err))
			}
		}
	}
	return ctx.Err()
}

// removed returns the records of an object that say what TTL removed: no table has it.
func removed(object []byte) (all []json.RawMessage, _ error) {
	var o struct{ Payload *string }
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, fmt.Errorf("not an object of the bucket: %w", err)
	}
	if o.Payload == nil {
		return nil, errors.New("it has no payload: only a bucket gets the records, a queue or a topic where they were")
	}
	var ev struct{ Records []json.RawMessage }
	if err := json.Unmarshal([]byte(*o.Payload), &ev); err != nil {
		return nil, fmt.Errorf("its payload is not an event: %w", err)
	}
	for _, raw := range ev.Records {
		var rec struct {
			EventName    string
			UserIdentity struct{ PrincipalID string }
		}
		if err := json.Unmarshal(raw, &rec); err != nil {
			return nil, fmt.Errorf("its payload is not an event: %w", err)
		}
		if rec.EventName == "REMOVE" && rec.UserIdentity.PrincipalID == "dynamodb.amazonaws.com" {
			all = append(all, raw)
		}
	}
	return all, nil
}

// send hands the worker a record in an event of its own, so that none holds up others.
func (r *resender) send(ctx context.Context, record json.RawMessage) error {
	payload := slices.Concat([]byte(`{"Records":[`), record, []byte(`]}`))
	out, err := r.api.Invoke(ctx, &lambda.InvokeInput{FunctionName: &r.function, Payload: payload})
	if err != nil {
		return err
	}
	var told struct {
		ErrorMessage      string
		BatchItemFailures []struct{ ItemIdentifier string }
	}
	err = json.Unmarshal(out.Payload, &told)
	switch {
	case out.FunctionError != nil:
		return fmt.Errorf("the worker failed: %s", told.ErrorMessage)
	case err != nil:
		return fmt.Errorf("it is no worker: %w", err)
	case len(told.BatchItemFailures) > 0:
		return fmt.Errorf("the worker could not do the record with the sequence number %s: see its log", told.BatchItemFailures[0].ItemIdentifier)
	}
	return nil
}
