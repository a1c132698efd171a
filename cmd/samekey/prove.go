package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/prove"
)

const proveLong = `Deploys a throw-away stack into an AWS account, examines Samekey's claims there,
writes ` + prove.MarkdownFile + ` and ` + prove.JSONFile + `, and removes the stack. It builds the version
of Samekey that --source has: the folder cmd/samekey of a checkout.

Before it begins it says what it makes, where, and what it may cost, and asks. Ctrl-C
ends the examination, and removes the stack; --clean removes what a run left that
could not. With --local, this machine stands in for AWS: what only AWS can show is
reported as not shown. docs/operate/prove.md has the policy that a run needs.`

func newProve(env environment) *cobra.Command {
	o := &proveOptions{account: account{env: env}}
	cmd := &cobra.Command{
		Use:   "prove [FLAGS] | prove --clean [RUN...] | prove --check REPORT.json",
		Short: "Examine Samekey in an AWS account",
		Long:  proveLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 && !o.clean {
				return wrongCallf("%q is not a flag", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch ctx := cmd.Context(); {
			case o.local && (o.clean || o.opt.Keep):
				return wrongCallf("--local leaves nothing behind: without --keep and --clean")
			case o.opt.Dollars <= 0 || o.opt.Limit <= 0:
				return wrongCallf("--max-dollars and --limit have to be positive")
			case o.check != "":
				return o.checkReport()
			case o.clean:
				return o.cleanUp(ctx, args)
			default:
				return o.run(ctx)
			}
		},
	}
	fs := cmd.Flags()
	o.registerPlace(fs)
	fs.BoolVar(&o.local, "local", false, "examine on this machine, without an account (Java)")
	fs.StringVar(&o.opt.Source, "source", ".", "the `FOLDER` cmd/samekey of a checkout, whose Samekey is examined")
	fs.Float64Var(&o.opt.Dollars, "max-dollars", prove.DefaultDollars, "don't begin if the run may cost more")
	fs.DurationVar(&o.opt.Limit, "limit", prove.DefaultLimit, "for how long to examine; the removal comes after it")
	fs.BoolVar(&o.opt.Keep, "keep", false, "leave the stack, to look around; --clean removes it")
	fs.BoolVar(&o.clean, "clean", false, "remove what earlier runs left: those that have expired, and each RUN that is named")
	fs.StringVar(&o.check, "check", "", "check the `REPORT` of another's run, a JSON file with its Markdown file beside it; examine nothing")
	fs.BoolVar(&o.dryRun, "dry-run", false, "print the plan, the policy and the templates, and make nothing")
	fs.BoolVar(&o.yes, "yes", false, "don't ask")
	return exitCodes(cmd, map[int]string{
		exitDone: "no claim failed", exitFailed: "a claim failed", exitFound: "the examination did not come to its end, or something is left behind; with --check, the report doesn't hold",
	})
}

type proveOptions struct {
	account
	opt                       prove.Options
	local, clean, dryRun, yes bool
	check                     string // a report
}

func (o *proveOptions) run(ctx context.Context) error {
	o.opt.Now, o.opt.Tell = o.env.now, o.env.note
	site, err := o.site(ctx)
	if err != nil {
		return err
	}
	plan, err := prove.Make(site, prove.Claims(), o.opt)
	if err != nil {
		return wrongCall(err)
	}
	o.env.note("%s", plan)
	switch {
	case o.dryRun:
		_, err := fmt.Fprintf(o.env.stdout, "%s\n%s\n%s\n", prove.Policy(site.Region()), prove.Template(true), prove.Nested(true)) // as they are: say would make a line of each
		return err
	case !o.yes && !agreed(o.env):
		return wrongCallf("nothing was made; --yes answers the question")
	}
	return o.tell(plan.Execute(ctx))
}

// tell writes a run's report, and decides the exit code.
func (o *proveOptions) tell(report *prove.Report, err error) error {
	if wrote := report.Write("."); wrote != nil {
		return wrote
	}
	if said := o.env.say("%s: %s", prove.MarkdownFile, report.Line()); said != nil {
		return said
	}
	switch {
	case err != nil:
		return exitWith(exitFound, err)
	case report.Count(prove.Failed) > 0:
		return exitWith(exitFailed, nil)
	}
	return nil
}

// site is where the run takes place.
func (o *proveOptions) site(ctx context.Context) (prove.Site, error) {
	if o.local {
		logs := io.Discard
		if o.env.getenv("PROVE_LOG") != "" {
			logs = o.env.screen
		}
		return &prove.Machine{Logs: logs}, nil
	}
	if err := o.open(ctx); err != nil {
		return nil, err
	}
	return prove.OpenAccount(ctx, o.sdk)
}

// checkReport checks a report that somebody sends.
func (o *proveOptions) checkReport() error {
	r, wrong, err := prove.Check(o.check, o.env.now())
	switch {
	case err != nil:
		return wrongCall(err)
	case len(wrong) > 0:
		return exitWith(exitFound, fmt.Errorf("%s doesn't hold: %s", o.check, strings.Join(wrong, "; ")))
	}
	if err := o.env.say("%s holds: %s", o.check, r.Line()); err != nil || r.Count(prove.Failed) == 0 {
		return err
	}
	return exitWith(exitFailed, nil)
}

// cleanUp removes what runs have left.
func (o *proveOptions) cleanUp(ctx context.Context, named []string) error {
	if err := o.open(ctx); err != nil {
		return err
	}
	account, err := prove.OpenAccount(ctx, o.sdk)
	if err != nil {
		return err
	}
	found, err := account.Leftovers(ctx)
	if err != nil {
		return err
	}
	var over []string
	for _, l := range found {
		switch {
		case slices.Contains(named, l.Run) || !l.Expires.IsZero() && l.Expires.Before(o.env.now()):
			over = append(over, l.Run)
		case l.Expires.IsZero():
			o.env.note("%s has no expiry: samekey prove --clean %[1]s removes it", l.Run)
		default:
			o.env.note("%s may be running until %s: samekey prove --clean %[1]s removes it", l.Run, l.Expires.Format("15:04 MST"))
		}
	}
	for _, run := range named {
		if !slices.Contains(over, run) {
			return fmt.Errorf("nothing is left of %s", run)
		}
	}
	if len(over) == 0 {
		return o.env.say("nothing to remove")
	}
	o.env.note("%s: remove %s", account.Where(), strings.Join(over, ", "))
	if !o.yes && !agreed(o.env) {
		return wrongCallf("nothing was removed; --yes answers the question")
	}
	for _, run := range over {
		if err := account.Clean(ctx, run); err != nil {
			return exitWith(exitFound, fmt.Errorf("%s: %w", run, err))
		}
		if err := o.env.say("removed %s", run); err != nil {
			return err
		}
	}
	return nil
}
