package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/plain"
	"github.com/samekey/samekey/internal/background/stream"
)

// sweepNow is the event with which a schedule starts a worker's sweep.
const sweepNow = `{"source":"aws.scheduler","task":"sweep"}`

func newSweep(env environment) *cobra.Command {
	var function string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "sweep --function WORKER [FLAGS]",
		Short: "Run the worker's sweep now",
		Long: `Invokes the worker as the sweep's schedule does. The sweep delivers late jobs, makes tickets
for abandoned operations, and updates the index of operations that wait for people. The
command waits until the run ends. To look without changing anything, use samekey list --scan.`,
		Args: takes(0, 0),
	}
	fs := cmd.Flags()
	place := account{env: env}
	place.registerPlace(fs)
	fs.StringVar(&function, "function", "", "name or ARN of the `WORKER` (the stack's output WorkerArn)")
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if function == "" {
			return wrongCallf("no worker: set --function (samekey list --scan looks through the table without a worker)")
		}
		if err := place.open(cmd.Context()); err != nil {
			return err
		}
		env.note("function %s, Region %s", function, place.sdk.Region)
		client := lambda.NewFromConfig(place.sdk, func(o *lambda.Options) {
			o.Retryer = retry.AddWithMaxAttempts(o.Retryer, 1) // no second try, because the first sweep may still run if its answer is missing
		})
		out, err := client.Invoke(cmd.Context(), &lambda.InvokeInput{FunctionName: &function, Payload: []byte(sweepNow)})
		switch {
		case err != nil:
			return err
		case out.FunctionError != nil:
			var told struct{ ErrorMessage string }
			_ = json.Unmarshal(out.Payload, &told) // if the payload can't be decoded, only the kind of error is shown
			return fmt.Errorf("the sweep failed: %s: %s; the next run continues this sweep", *out.FunctionError, told.ErrorMessage)
		}
		var rep stream.Report
		if err := json.Unmarshal(out.Payload, &rep); err != nil {
			return fmt.Errorf("the function is not a worker: it did not answer with a sweep's report: %w", err)
		}
		if asJSON {
			return env.printJSON(rep)
		}
		err = env.say("%d items seen, %d jobs delivered, %d tickets made, %d operations made stuck, %d records let go; whole table seen: %t",
			rep.Scanned, rep.Delivered, rep.Queued, rep.MadeStuck, rep.LetGo, rep.Complete)
		if rep.Young > 0 {
			err = errors.Join(err, env.say("%d jobs and operations skipped: the stream's readers may still handle them; sweep again after %s", rep.Young,
				plain.Time(rep.YoungUntil.Add(time.Second))))
		}
		for _, why := range slices.Sorted(maps.Keys(rep.ByReason)) {
			err = errors.Join(err, env.say("%s: %d", why, rep.ByReason[why].Count))
		}
		return err
	}
	return exitCodes(cmd, map[int]string{exitDone: "done, or stopped by the run's time limit (then the next run continues)"})
}
