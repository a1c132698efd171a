package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/doctor"
)

const doctorLong = `Looks for mistakes in the deployment of a table, its worker and the functions on it.

It only reads, and tries writes whose conditions can't be true. Each finding says
what is wrong, what becomes of it and how to mend it. What can't be looked at, for
lack of rights or of an answer, is listed as not checked, never as good, and with
--strict it is a failure.

Functions are found by their variable IDEM_TABLE, by the table's stream, and by the
worker's SAMEKEY_FUNCTIONS; --stack takes those of a CloudFormation stack and of its
nested stacks, and the table too. docs/operate/doctor.md lists the checks.`

func newDoctor(env environment) *cobra.Command {
	var opt doctor.Options
	var strict bool
	cmd := &cobra.Command{
		Use:   "doctor [--table TABLE | --stack STACK] [FLAGS]",
		Short: "Find mistakes in a deployment",
		Long:  doctorLong,
		Args:  takes(0, 0),
	}
	fs := cmd.Flags()
	op := newOperator(env, fs)
	fs.StringVar(&opt.Stack, "stack", "", "the CloudFormation `STACK` with the functions")
	fs.StringArrayVar(&opt.Functions, "function", nil, "one more `FUNCTION` on the table; may be repeated")
	fs.StringVar(&opt.As, "as", "", "the `ROLE` as which the caller looks, function, worker or operator: what it needs on the table and may not do is a finding")
	fs.DurationVar(&opt.ClientRetries, "client-retries", 0, "the longest `TIME` over which a client retries, as 72h")
	fs.DurationVar(&opt.ProviderRemembers, "provider-remembers", 24*time.Hour, "the `TIME` for which the provider remembers a key: Stripe's API v1 24h, v2 720h")
	fs.BoolVar(&strict, "strict", false, "fail on checks that AWS gave no answer for, too")
	fs.IntVar(&opt.Sample, "sample", 200, "how many items of the table are looked at")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case opt.As != "" && !slices.Contains(doctor.Roles(), opt.As):
			return wrongCallf("--as is %q: %s", opt.As, strings.Join(doctor.Roles(), ", "))
		case opt.Sample < 1 || opt.Sample > 1000:
			return wrongCallf("--sample is 1 to 1000")
		case op.table == "" && opt.Stack == "":
			return wrongCallf("which table? Set --table, IDEM_TABLE or --stack")
		}
		if opt.Stack == "" || fs.Changed("table") { // the stack's own table before IDEM_TABLE
			opt.Table = op.table
		}
		if err := op.account.open(cmd.Context()); err != nil {
			return err
		}
		opt.TableOnly, opt.Now, opt.Version = op.onlyTable(), env.now(), libraryVersion()
		facts, err := doctor.Gather(cmd.Context(), doctor.NewClients(op.sdk, op.dynamodb()), opt)
		if err != nil {
			return err
		}
		report := doctor.Examine(facts)
		env.note("table %s, Region %s", report.Table, op.sdk.Region)
		if op.json {
			err = env.printJSON(report)
		} else {
			err = env.printDoctor(report)
		}
		switch {
		case err != nil:
			return err
		case report.Mistakes() > 0:
			return exitWith(exitFound, nil)
		case strict && report.Unanswered() > 0:
			return exitWith(exitFound, fmt.Errorf("--strict: %d checks had no answer from AWS", report.Unanswered()))
		case len(report.Good)+len(report.Findings) == 0:
			return errors.New("nothing could be checked: that is no good sign, but none at all")
		}
		return nil
	}
	return exitCodes(cmd, map[int]string{
		exitDone: "no mistake was found in what could be checked", exitFailed: "failed, or nothing could be checked",
		exitFound: "there are mistakes, or with --strict checks without an answer",
	})
}

// onlyTable says why nothing but the table can be asked: with a local DynamoDB, the
// other services would be those of a real account.
func (op *operator) onlyTable() string {
	at := op.endpoint
	if at == "" {
		at = op.env.getenv("AWS_ENDPOINT_URL_DYNAMODB")
	}
	if at == "" || op.env.getenv("AWS_ENDPOINT_URL") != "" {
		return ""
	}
	return "not asked: DynamoDB is at " + at + ", and AWS_ENDPOINT_URL names no place of the other services"
}

func (e environment) printDoctor(r *doctor.Report) (err error) {
	say := func(format string, args ...any) { err = errors.Join(err, e.say(format, args...)) }
	for _, f := range r.Findings {
		say("%s: %s: %s (%s)\n    causes: %s\n    mend:   %s", f.Severity, f.Where, f.What, f.Check, f.Causes, f.Mend)
	}
	if len(r.NotChecked) > 0 {
		say("not checked:")
		var whys []string
		checks := make(map[string][]string)
		for _, u := range r.NotChecked {
			if checks[u.Why] == nil {
				whys = append(whys, u.Why)
			}
			checks[u.Why] = append(checks[u.Why], u.Check)
		}
		for _, why := range whys {
			say("    %s: %s", strings.Join(checks[why], ", "), why)
		}
	}
	say("table %s: good: %d, mistakes: %d, notes: %d, not checked: %d",
		r.Table, len(r.Good), r.Mistakes(), len(r.Findings)-r.Mistakes(), len(r.NotChecked))
	return err
}
