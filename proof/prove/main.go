// Command prove examines Samekey where it runs: it deploys a throw-away stack, holds each
// claim against it, writes a report, and removes all that it made. A place is an AWS account
// ([Account]) or this machine ([Machine]), which stands in for one. docs/operate/prove.md is
// its manual.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

const usage = `usage: prove [FLAGS] | prove --clean [RUN...] | prove --check REPORT.json

Deploys a throw-away stack into an AWS account, examines Samekey's claims there,
writes ` + MarkdownFile + ` and ` + JSONFile + `, and removes the stack. It builds
Samekey of the checkout that --source has.

Before it begins it says what it makes, where, and what it may cost, and asks. Ctrl-C
ends the examination, and removes the stack; --clean removes what a run left that
could not. With --local, this machine stands in for AWS: what only AWS can show is
reported as not shown. docs/operate/prove.md has more.

Exit codes: 0 no claim failed; 1 a claim failed; 2 called the wrong way; 3 the examination
did not come to its end, or something is left behind; with --check, the report doesn't hold.

`

// The exit codes.
const (
	exitDone = iota
	exitFailed
	exitWrong
	exitFound
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the program as usual
	os.Exit(run(ctx, outside{os.Stdin, os.Stdout, os.Stderr, credentials}, os.Args[1:]))
}

// outside is what the program has of it.
type outside struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	// aws is the account that AWS's own tools would use here. Its errors are those of a wrong call.
	aws func(ctx context.Context, region, profile string) (aws.Config, error)
}

type program struct {
	outside
	opt                       Options
	profile, region           string
	local, clean, dryRun, yes bool
	check                     string // a report
}

// exitError is an error with an exit code. Without err, nothing is printed.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return fmt.Sprint(e.err) }

func exitWith(code int, err error) error { return &exitError{code, err} }

func wrongCall(err error) error { return exitWith(exitWrong, err) }

func run(ctx context.Context, o outside, args []string) int {
	p := &program{outside: o}
	flags := flag.NewFlagSet("prove", flag.ContinueOnError)
	flags.SetOutput(o.stderr)
	flags.Usage = func() {
		fmt.Fprint(o.stderr, usage)
		flags.PrintDefaults()
	}
	flags.StringVar(&p.region, "region", "", "the AWS `REGION`; default as for AWS's own tools: AWS_REGION, or that of the profile")
	flags.StringVar(&p.profile, "profile", "", "a `PROFILE` of AWS's config files, also one with SSO; default AWS_PROFILE")
	flags.BoolVar(&p.local, "local", false, "examine on this machine, without an account (Java)")
	flags.StringVar(&p.opt.Source, "source", "..", "the `FOLDER` of a checkout, whose Samekey is examined")
	flags.Float64Var(&p.opt.Dollars, "max-dollars", DefaultDollars, "don't begin if the run may cost more")
	flags.DurationVar(&p.opt.Limit, "limit", DefaultLimit, "for how long to examine; the removal comes after it")
	flags.BoolVar(&p.opt.Keep, "keep", false, "leave the stack, to look around; --clean removes it")
	flags.BoolVar(&p.clean, "clean", false, "remove what earlier runs left: those that have expired, and each RUN that is named")
	flags.StringVar(&p.check, "check", "", "check the `REPORT` of another's run, a JSON file with its Markdown file beside it; examine nothing")
	flags.BoolVar(&p.dryRun, "dry-run", false, "print the plan, the policy and the templates, and make nothing")
	flags.BoolVar(&p.yes, "yes", false, "don't ask")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitDone
	} else if err != nil {
		return exitWrong
	}
	err := p.run(ctx, flags.Args())
	if err == nil {
		return exitDone
	}
	code := exitFailed
	if e, ok := errors.AsType[*exitError](err); ok {
		code, err = e.code, e.err
	}
	if err != nil {
		p.note("prove: %v", err)
	}
	return code
}

func (p *program) run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 0 && !p.clean:
		return wrongCall(fmt.Errorf("unexpected argument %q", args[0]))
	case p.local && (p.clean || p.opt.Keep):
		return wrongCall(errors.New("--local leaves nothing behind: omit --keep and --clean"))
	case p.opt.Dollars <= 0 || p.opt.Limit <= 0:
		return wrongCall(errors.New("--max-dollars and --limit must be above 0"))
	case p.check != "":
		return p.checkReport()
	case p.clean:
		return p.cleanUp(ctx, args)
	}
	return p.examine(ctx)
}

func (p *program) note(format string, args ...any) { fmt.Fprintf(p.stderr, format+"\n", args...) }

func (p *program) say(format string, args ...any) error {
	_, err := fmt.Fprintf(p.stdout, format+"\n", args...)
	return err
}

// agreed asks, unless --yes has answered.
func (p *program) agreed() bool {
	if p.yes {
		return true
	}
	fmt.Fprint(p.stderr, "Go on? [y/N] ")
	answer, _ := bufio.NewReader(p.stdin).ReadString('\n') // nothing typed is a no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func (p *program) examine(ctx context.Context) error {
	p.opt.Tell = p.note
	site, err := p.site(ctx)
	if err != nil {
		return err
	}
	plan, err := Make(site, Claims(), p.opt)
	if err != nil {
		return wrongCall(err)
	}
	p.note("%s", plan)
	switch {
	case p.dryRun:
		return p.say("%s\n%s\n%s", Policy(site.Region()), Template(true), Nested(true))
	case !p.agreed():
		return wrongCall(errors.New("not confirmed: nothing was made (--yes skips the question)"))
	}
	report, err := plan.Execute(ctx)
	return p.tell(report, err)
}

// tell writes a run's report, and decides the exit code.
func (p *program) tell(report *Report, err error) error {
	if wrote := report.Write("."); wrote != nil {
		return wrote
	}
	if said := p.say("%s: %s", MarkdownFile, report.Line()); said != nil {
		return said
	}
	switch {
	case err != nil:
		return exitWith(exitFound, err)
	case report.Count(Failed) > 0:
		return exitWith(exitFailed, nil)
	}
	return nil
}

// site is where the run takes place.
func (p *program) site(ctx context.Context) (Site, error) {
	if p.local {
		logs := io.Discard
		if os.Getenv("PROVE_LOG") != "" {
			logs = p.stderr
		}
		return &Machine{Logs: logs}, nil
	}
	return p.account(ctx)
}

func (p *program) account(ctx context.Context) (*Account, error) {
	cfg, err := p.aws(ctx, p.region, p.profile)
	if err != nil {
		return nil, wrongCall(err)
	}
	return OpenAccount(ctx, cfg)
}

func credentials(ctx context.Context, region, profile string) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithSharedConfigProfile(profile)) // "" says nothing
	if err != nil {
		return cfg, err
	}
	if cfg.Region == "" {
		return cfg, errors.New("no Region: set --region, AWS_REGION or AWS_DEFAULT_REGION, or add a region to the AWS profile")
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return cfg, fmt.Errorf("no credentials: set --profile or AWS_PROFILE (with SSO, run aws sso login first), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %w", err)
	}
	return cfg, nil
}

// checkReport checks a report that somebody sends.
func (p *program) checkReport() error {
	r, wrong, err := Check(p.check, time.Now())
	switch {
	case err != nil:
		return wrongCall(err)
	case len(wrong) > 0:
		return exitWith(exitFound, fmt.Errorf("%s doesn't hold: %s", p.check, strings.Join(wrong, "; ")))
	}
	if err := p.say("%s holds: %s", p.check, r.Line()); err != nil || r.Count(Failed) == 0 {
		return err
	}
	return exitWith(exitFailed, nil)
}

// cleanUp removes what runs have left.
func (p *program) cleanUp(ctx context.Context, named []string) error {
	account, err := p.account(ctx)
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
		case slices.Contains(named, l.Run) || !l.Expires.IsZero() && l.Expires.Before(time.Now()):
			over = append(over, l.Run)
		case l.Expires.IsZero():
			p.note("%s has no expiry: --clean %[1]s removes it", l.Run)
		default:
			p.note("%s may be running until %s: --clean %[1]s removes it", l.Run, l.Expires.Format("15:04 MST"))
		}
	}
	for _, run := range named {
		if !slices.Contains(over, run) {
			return fmt.Errorf("nothing is left of %s", run)
		}
	}
	if len(over) == 0 {
		return p.say("nothing to remove")
	}
	p.note("%s: remove %s", account.Where(), strings.Join(over, ", "))
	if !p.agreed() {
		return wrongCall(errors.New("not confirmed: nothing was removed (--yes skips the question)"))
	}
	for _, run := range over {
		if err := account.Clean(ctx, run); err != nil {
			return exitWith(exitFound, fmt.Errorf("%s: %w", run, err))
		}
		if err := p.say("removed %s", run); err != nil {
			return err
		}
	}
	return nil
}
