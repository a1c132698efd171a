package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/samekey/samekey/cmd/samekey/internal/check"
)

const checkLong = `Sends one request to an HTTP API many times, with Idempotency-Key, and judges the answers.
Choose a request that does no harm if it is carried out a few times, such as a small order
of a test account. Before the command sends anything, it prints the number of requests, and
asks whether to go on.

More flags allow more checks: --other-body, --refused-body, --other-path, --other-method,
--other-caller-env and --origin. With --contract acp or ucp, the request must create a
checkout session, and the command also updates, completes and cancels sessions. See
docs/use/check.md.`

// checkOptions holds the flags of samekey check.
type checkOptions struct {
	template         check.Template
	options          check.Options
	json, plan, yes  bool
	body, other, bad text
	header, env      []named
	callerEnv        []named
}

// text holds a text, from the flag --NAME, or the name of a file that contains the
// text, from the flag --NAME-file.
type text struct{ value, file string }

func (t *text) register(fs *pflag.FlagSet, name, usage string) {
	fs.StringVar(&t.value, name, "", usage)
	fs.StringVar(&t.file, name+"-file", "", "read the text of --"+name+" from `FILE`")
}

func (t *text) read() ([]byte, error) {
	switch {
	case t.file == "":
		return []byte(t.value), nil
	case t.value != "":
		return nil, fmt.Errorf("%s: give the body as text or as a file, not both", t.file)
	}
	return os.ReadFile(t.file)
}

func newCheck(env environment) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check --body JSON [FLAGS] URL",
		Short: "Check that an HTTP API keeps the rules of Idempotency-Key",
		Long:  checkLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrongCallf("no URL: give the URL of the API; samekey check --help lists the flags")
			}
			return takes(1, 1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.template.URL = args[0]
			if err := o.fill(env); err != nil {
				return wrongCall(err)
			}
			return o.run(cmd.Context(), env)
		},
	}
	o.register(cmd.Flags())
	return exitCodes(cmd, map[int]string{
		exitDone: "the API breaks no rule of the contract", exitFailed: "the API breaks a rule",
		exitWrong: "usage error, or not confirmed", exitFound: "the check was not completed",
	})
}

func (o *checkOptions) run(ctx context.Context, env environment) error {
	plan, err := check.Make(o.template, func(opt *check.Options) { *opt = o.options })
	if err != nil {
		return wrongCall(err)
	}
	fmt.Fprintf(env.stderr, "samekey check sends at most %d requests to %s %s. A correct API carries out %d of the requests, "+
		"and a wrong API carries out up to %d. All keys begin with %s.\n", plan.Requests, plan.Method, plan.URL, plan.Effects, plan.Most, plan.Keys)
	switch {
	case o.plan:
		return nil
	case !o.yes && !agreed(env):
		return wrongCallf("not confirmed: nothing was sent (--yes skips the question)")
	}
	report, err := plan.Run(ctx)
	if err := o.print(env, report); err != nil {
		return exitWith(exitFound, err)
	}
	switch {
	case err != nil:
		return exitWith(exitFound, err)
	case report.Faults > 0:
		return exitWith(exitFailed, nil)
	case report.Trouble != "":
		return exitWith(exitFound, nil)
	}
	return nil
}

func agreed(env environment) bool {
	fmt.Fprint(env.stderr, "Go on? [y/N] ")
	answer, _ := bufio.NewReader(env.stdin).ReadString('\n') // an error or an empty answer means no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func (o *checkOptions) print(env environment, report *check.Report) error {
	if !o.json {
		return report.Print(env.stdout)
	}
	enc := json.NewEncoder(env.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(report)
}

func (o *checkOptions) register(fs *pflag.FlagSet) {
	t := &o.template
	o.body.register(fs, "body", "send `TEXT` as the body; required, unless --body-file or --no-body is given")
	fs.BoolVar(&t.NoBody, "no-body", false, "the request has no body")
	fs.StringVar(&t.Method, "method", http.MethodPost, "`METHOD` of the request")
	fs.Func("header", "send the header `NAME=VALUE`; may be repeated (Content-Type defaults to application/json)", add(&o.header))
	fs.Func("header-env", "send a header with a secret value: `NAME=VARIABLE` names the header, and the environment variable that has the value; may be repeated", add(&o.env))
	o.other.register(fs, "other-body", "`TEXT` of another valid body: check that the API refuses this body under the first request's key")
	o.bad.register(fs, "refused-body", "`TEXT` of a body that the API refuses with a 4xx: check that the refused request's key works with a valid body")
	fs.StringVar(&t.OtherPath, "other-path", "", "another `PATH` that accepts keys and the same body: check that the API refuses the first request's key on this path")
	fs.StringVar(&t.OtherMethod, "other-method", "", "another `METHOD`: check that a request with this method and the first request's key doesn't get the first answer")
	fs.Func("other-caller-env", "credentials of another caller, `NAME=VARIABLE` as in --header-env: check that this caller doesn't get the first caller's answer", add(&o.callerEnv))
	fs.StringVar(&t.Origin, "origin", "", "check CORS for this `ORIGIN` of a web page, such as https://shop.example")
	fs.BoolVar(&t.KeyOptional, "key-optional", false, "a request without a key may run, because the API documents keys as optional")
	c := &t.Checkout
	fs.StringVar(&c.ID, "id-pointer", "", "acp, ucp: JSON `POINTER` to the session's id in the answer (default: /id)")
	for _, op := range []struct {
		name, path string
		into       *check.Operation
	}{{"update", "{id}", &c.Update}, {"complete", "{id}/complete", &c.Complete}, {"cancel", "{id}/cancel", &c.Cancel}} {
		fs.StringVar(&op.into.Path, op.name+"-path", "", "acp, ucp: `PATH` of the operation \""+op.name+"\", below the URL (default: "+op.path+")")
		fs.Func(op.name+"-body", "acp, ucp: `TEXT` of a body that the API accepts for the operation \""+op.name+"\"", func(body string) error {
			op.into.Body = []byte(body)
			return nil
		})
	}
	p := &o.options
	fs.StringVar(&p.Contract, "contract", check.Default, "`CONTRACT` that decides the exit code: "+strings.Join(check.Contracts(), ", "))
	fs.StringVar(&p.Prefix, "prefix", check.DefaultPrefix, "begin all keys with `TEXT`, so that operators recognize the requests")
	fs.StringVar(&p.Name, "name", "", "`TEXT` that names this run in all keys, after the prefix (default: random)")
	fs.IntVar(&p.Racers, "at-once", check.DefaultRacers, "number of requests to send at the same time")
	fs.IntVar(&p.Requests, "requests", check.DefaultRequests, "maximum number of requests")
	fs.DurationVar(&p.Timeout, "timeout", check.DefaultTimeout, "longest wait for an answer")
	fs.DurationVar(&p.Total, "total", check.DefaultTotal, "maximum duration of the run")
	fs.BoolVar(&o.json, "json", false, "print the report as JSON")
	fs.BoolVar(&o.plan, "plan", false, "print how many requests would be sent, and send none")
	fs.BoolVar(&o.yes, "yes", false, "skip the question")
}

// checkOptions.fill completes the template from files and the environment.
func (o *checkOptions) fill(env environment) (err error) {
	t := &o.template
	for _, from := range []struct {
		text *text
		into *[]byte
	}{{&o.body, &t.Body}, {&o.other, &t.OtherBody}, {&o.bad, &t.RefusedBody}} {
		if *from.into, err = from.text.read(); err != nil {
			return err
		}
	}
	if len(t.Body) == 0 && !t.NoBody {
		return errors.New("no body: give --body, --body-file or --no-body")
	}
	t.Header = make(http.Header)
	for _, h := range o.header {
		t.Header.Add(h.name, h.value)
	}
	if err := headersFrom(env, o.env, t.Header); err != nil {
		return err
	}
	t.OtherCaller = make(http.Header)
	if err := headersFrom(env, o.callerEnv, t.OtherCaller); err != nil {
		return err
	}
	for what, limit := range map[string]time.Duration{"--timeout": o.options.Timeout, "--total": o.options.Total} {
		if limit <= 0 {
			return fmt.Errorf("%s must be above 0", what)
		}
	}
	return nil
}

// headersFrom adds a header to the map named into for each element of variables. The
// element has the header's name and the name of the environment variable that holds the
// header's value.
func headersFrom(env environment, variables []named, into http.Header) error {
	for _, v := range variables {
		value := env.getenv(v.value)
		if value == "" {
			return fmt.Errorf("the environment variable %s for the header %s is not set", v.value, v.name)
		}
		into.Add(v.name, value)
	}
	return nil
}
