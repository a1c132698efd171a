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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// environment.resend reads S3 objects from files and folders. From these objects, it sends
// the worker the stream records that report removals by TTL.
func (e environment) resend(ctx context.Context, sdk aws.Config, function string, files []string) error {
	e.note("function %s, Region %s", function, sdk.Region)
	r := resender{api: lambda.NewFromConfig(sdk), function: function}
	for _, at := range files {
		if err := r.all(ctx, at); err != nil {
			return err
		}
	}
	err := e.say("removed records sent to the worker: %d, from %d files; failed: %d", r.sent, r.files, len(r.failed))
	return errors.Join(append([]error{err}, r.failed...)...)
}

type resender struct {
	api         *lambda.Client
	function    string
	files, sent int
	failed      []error
}

// resender.all resends a file, or all files of a folder.
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

// removed(object) returns those stream records of an S3 object that report removals by TTL.
func removed(object []byte) (all []json.RawMessage, _ error) {
	var o struct{ Payload *string }
	if err := json.Unmarshal(object, &o); err != nil {
		return nil, fmt.Errorf("the file is not an object of FailedBucket: %w", err)
	}
	if o.Payload == nil {
		return nil, errors.New("the object has no payload: Lambda includes the stream records only if the on-failure destination is an S3 bucket")
	}
	var ev struct{ Records []json.RawMessage }
	if err := json.Unmarshal([]byte(*o.Payload), &ev); err != nil {
		return nil, fmt.Errorf("the payload is not a stream event: %w", err)
	}
	for _, raw := range ev.Records {
		var rec struct {
			EventName    string
			UserIdentity struct{ PrincipalID string }
		}
		if err := json.Unmarshal(raw, &rec); err != nil {
			return nil, fmt.Errorf("the payload is not a stream event: %w", err)
		}
		if rec.EventName == "REMOVE" && rec.UserIdentity.PrincipalID == "dynamodb.amazonaws.com" {
			all = append(all, raw)
		}
	}
	return all, nil
}

// resender.send sends the worker an event with one record, so that no record delays others.
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
		return fmt.Errorf("the function is not a worker: %w", err)
	case len(told.BatchItemFailures) > 0:
		return fmt.Errorf("the worker did not process the record with the sequence number %s: see the worker's log", told.BatchItemFailures[0].ItemIdentifier)
	}
	return nil
}
