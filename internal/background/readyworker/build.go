package readyworker

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/samekey/samekey/dynamo"
	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/stream"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/base/sdkenv"
	"github.com/samekey/samekey/internal/state"
	"github.com/samekey/samekey/internal/trace"
	"github.com/samekey/samekey/lambda"
	"github.com/samekey/samekey/lambda/metrics"
	"github.com/samekey/samekey/seal"
)

// Keys makes the key provider for sealed records. sdk returns the settings of the SDK
// client for a service, such as KMS. getenv returns the value of an environment
// variable. Keys reads only variables whose names begin with SAMEKEY_KMS_. The error
// names the variable that is wrong.
type Keys func(sdk func(service string) aws.Config, getenv func(string) string) (seal.Provider, error)

// Settings are the fields of lambda/worker.Options, which a program with its own main
// can set.
type Settings struct {
	Sinks         jobs.Route
	FairBy        func(jobs.Delivery) string
	WithoutTenant []string
	Former        map[string]string
	Resume        map[string]func(context.Context, jobs.Ticket) error
	Keys          seal.Provider
	Telemetry     Telemetry
}

// Telemetry makes traces and metrics, in addition to the log lines of package metrics.
type Telemetry interface {
	Tracer() trace.Tracer
	StreamHooks() stream.Hooks
	StoreHooks() dynamo.Hooks
}

// Main runs the worker that the environment variables describe. If SAMEKEY_KMS_KEYS is
// not set, jobs with sealed args wait. If keys is nil and SAMEKEY_KMS_KEYS is set, the
// program ends with an error. Test programs set another clock by optFns.
func Main(keys Keys, optFns ...func(*worker.Options)) {
	w, err := New(os.Environ(), keys, Settings{}, optFns...)
	if err != nil {
		log.SetFlags(0)
		log.Fatalf("samekey-worker: %v", err) //nolint:forbidigo // the main of two programs
	}
	lambda.Start(w)
}

// New returns the worker that environ describes. The error has a line for each wrong
// variable. But if IDEM_TABLE is malformed, or a present name in Settings.Former is
// unknown, the error may say so only once the other faults are corrected.
func New(environ []string, keys Keys, own Settings, optFns ...func(*worker.Options)) (metrics.Handler, error) {
	w, err := build(environ, keys, own, optFns...)
	if err != nil {
		return nil, fmt.Errorf("the environment is not complete:\n%w", err)
	}
	return w, nil
}

func build(environ []string, keys Keys, own Settings, optFns ...func(*worker.Options)) (metrics.Handler, error) {
	env := newEnvironment(environ)
	c := clients{env, own}
	table := env.required("IDEM_TABLE", "the name of the table of the records")
	queue := env.queue("SAMEKEY_TICKETS_URL")
	sinks := env.sinks(c)
	functions := env.functions(c)
	namespaces := env.namespaces()
	role := env.role("SAMEKEY_SCHEDULE_ROLE")
	sealer := env.sealer(c, keys, own.Keys)
	grace, late := env.duration("SAMEKEY_GRACE"), env.duration("SAMEKEY_SWEEP_LATE")
	if grace > state.MaxGrace {
		env.wrong("SAMEKEY_GRACE", "is %q: write at most 24h: meanwhile an abandoned request has no answer, and its ticket grows old", env.text("SAMEKEY_GRACE"))
	}
	pages := env.whole("SAMEKEY_SWEEP_PAGES")
	for _, name := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if env.text(name) == "" {
			env.wrong(name, "is not set: Lambda sets it; elsewhere, set it yourself")
		}
	}
	if _, err := sdkenv.Config(env.text, ""); err != nil {
		env.errs = append(env.errs, err)
	}
	if err := env.err(); err != nil {
		return nil, err
	}
	db := c.dynamoDB()
	counts := metrics.New(os.Stdout, cmp.Or(env.text("SAMEKEY_APP"), env.text("AWS_LAMBDA_FUNCTION_NAME"), "samekey"))
	storeHooks, hooks := counts.StoreHooks(), counts.StreamHooks()
	var tracer trace.Tracer
	if own.Telemetry != nil {
		tracer = own.Telemetry.Tracer()
		storeHooks, hooks = dynamo.Join(storeHooks, own.Telemetry.StoreHooks()), stream.Join(hooks, own.Telemetry.StreamHooks())
	}
	store, err := dynamo.New(db, table, func(o *dynamo.Options) { o.Hooks, o.Seal = storeHooks, sealer })
	if err != nil {
		env.wrong("IDEM_TABLE", "is %q: write the name or ARN of a table: %v", table, err)
		return nil, env.err()
	}
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	settings := func(o *worker.Options) {
		o.Sink, o.Functions, o.Namespaces = sinks, functions, namespaces
		o.Grace, o.Logger, o.Hooks = grace, logger, stream.Join(hooks, stream.Log(logger))
		o.Tracer = tracer
		o.Sweep = func(o *stream.SweepOptions) {
			o.Late, o.PagesPerSecond = late, float64(pages)
		}
	}
	return counts.Wrap(worker.New(db, store, c.tickets(queue, role, logger), append([]func(*worker.Options){settings}, optFns...)...)), nil
}

// clients.tickets returns the queue of tickets. If role is set, the queue makes
// schedules for tickets of later jobs.
func (c clients) tickets(url, role string, logger *slog.Logger) *completer.Queue {
	return completer.NewQueue(c.sqs(), url, func(o *completer.QueueOptions) {
		if o.Logger = logger; role != "" {
			o.Schedule, o.Role = c.scheduler().CreateSchedule, role
		}
	})
}

// environment.sealer returns the sealer that opens sealed args, or nil if there is no
// key.
func (e *environment) sealer(c clients, keys Keys, own seal.Provider) *seal.Sealer {
	const name = "SAMEKEY_KMS_KEYS"
	opens := func(o *seal.Options) { o.OpenOnly = true } // the worker makes no records, so it seals nothing
	switch {
	case e.text(name) == "" && own == nil:
		return nil
	case own != nil && e.text(name) != "":
		e.wrong(name, "is set, and the program has Options.Keys: keep one of them")
		return nil
	case own != nil:
		return seal.New(own, opens)
	case keys == nil:
		e.wrong(name, "is not a setting of this program, which can't open sealed args: build github.com/samekey/samekey/kms/cmd/samekey-worker in its place")
		return nil
	}
	provider, err := keys(c.sdk, e.text)
	if err != nil {
		e.errs = append(e.errs, err)
		return nil
	}
	return seal.New(provider, opens)
}

// environment.queue returns a setting that must be the URL of a standard queue.
func (e *environment) queue(name string) string {
	const example = "the URL of a standard SQS queue, as https://sqs.REGION.amazonaws.com/ACCOUNT/NAME"
	url := e.required(name, example)
	if url != "" && (!isURL(url) || strings.HasSuffix(url, ".fifo")) {
		e.wrong(name, "is %q: write %s", url, example)
	}
	return url
}

func (e *environment) role(name string) string {
	arn := e.text(name)
	if arn != "" && (!strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":role/")) {
		e.wrong(name, "is %q: write a role's ARN, as arn:aws:iam::ACCOUNT:role/NAME", arn)
	}
	return arn
}

// environment.namespaces returns the namespaces in SAMEKEY_NAMESPACES. An empty list
// means all namespaces.
func (e *environment) namespaces() []string {
	const name = "SAMEKEY_NAMESPACES"
	list := e.list(name)
	for _, n := range list {
		if !state.IsNamespace(n) {
			e.wrong(name, "has %q: write names of at most 64 letters, digits, '-', '_' and '.', with commas between them", n)
		}
	}
	return list
}
