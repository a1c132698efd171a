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

const doctorLong = `Finds mistakes in the deployment of a table, its worker and its functions. Each finding says
what is wrong, what it causes, and how to mend it. doctor changes nothing. To learn your
permissions, it tries writes that fail, because their condition is always false. If AWS
refuses a check's request or doesn't answer it, the check is listed as not checked.

doctor examines the functions whose variable IDEM_TABLE names the table. With --function, it
examines the functions that you name instead. With --stack, it takes table and functions from
a CloudFormation stack and its nested stacks. In each case, it also examines the functions
that read the table's stream, and the functions in the worker's SAMEKEY_FUNCTIONS.
docs/operate/doctor.md lists the checks.`

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
	fs.StringVar(&opt.Stack, "stack", "", "CloudFormation `STACK` that contains the functions")
	fs.StringArrayVar(&opt.Functions, "function", nil, "examine this `FUNCTION`, besides the functions of --stack; may be repeated")
	fs.StringVar(&opt.As, "as", "", "check that your credentials have the permissions that `ROLE` (function, worker or operator) needs on the table")
	fs.DurationVar(&opt.ClientRetries, "client-retries", 0, "longest `TIME` over which a client retries, such as 72h")
	fs.DurationVar(&opt.ProviderRemembers, "provider-remembers", 24*time.Hour, "`TIME` for which the provider remembers a key (Stripe: 24h for API v1, 720h for v2)")
	fs.BoolVar(&strict, "strict", false, "also fail if AWS gave no answer for a check")
	fs.IntVar(&opt.Sample, "sample", 200, "number of the table's items to examine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case opt.As != "" && !slices.Contains(doctor.Roles(), opt.As):
			return wrongCallf("--as is %q: give one of %s", opt.As, strings.Join(doctor.Roles(), ", "))
		case opt.Sample < 1 || opt.Sample > 1000:
			return wrongCallf("--sample must be 1 to 1000")
		case op.table == "" && opt.Stack == "":
			return wrongCallf("no table: set --table, IDEM_TABLE or --stack")
		}
		if opt.Stack == "" || fs.Changed("table") { // with --stack, IDEM_TABLE is ignored
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
			return exitWith(exitFound, fmt.Errorf("--strict: %d checks could not be made", report.Unanswered()))
		case len(report.Good)+len(report.Findings) == 0:
			return errors.New("nothing could be checked")
		}
		return nil
	}
	return exitCodes(cmd, map[int]string{
		exitDone: "no mistake was found by the checks that could be made", exitFailed: "failed, or nothing could be checked",
		exitFound: "mistakes found; with --strict also: AWS gave no answer for a check",
	})
}

// onlyTable returns the reason why samekey doctor asks only DynamoDB; "" if doctor asks
// all services. If only DynamoDB has a local endpoint, doctor doesn't ask the other
// services, because the calls would go to a real account.
func (op *operator) onlyTable() string {
	at := op.endpoint
	if at == "" {
		at = op.env.getenv("AWS_ENDPOINT_URL_DYNAMODB")
	}
	if at == "" || op.env.getenv("AWS_ENDPOINT_URL") != "" {
		return ""
	}
	return "only DynamoDB was asked, at " + at + "; to ask the other services too, set AWS_ENDPOINT_URL"
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
