// Package worker lets you build the background worker in a main package of your own.
// Use it to add your own sink, fair queues, another provider of data keys, or traces.
// The worker reads the same environment variables as cmd/samekey-worker
// (docs/operate/background.md#its-settings), and writes the same metrics and log lines.
// So samekey.yaml can deploy your worker too:
//
//	w, err := worker.New(func(o *worker.Options) {
//		o.Sinks = jobs.Route{"send_receipt": jobs.SinkFunc(send)}
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	lambda.Start(w)
//
// If you need none of these additions, deploy cmd/samekey-worker.
package worker

import (
	"context"
	"os"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/readyworker"
	"github.com/samekey/samekey/seal"
)

// Options are the settings that an environment variable can't hold. The zero value makes
// the worker of cmd/samekey-worker.
type Options struct {
	// Sinks maps kinds of jobs to your own sinks, in addition to the sinks of
	// SAMEKEY_SINKS. New refuses a kind that SAMEKEY_SINKS has too. Each call of a sink
	// has at most 5 seconds. After a call that used up its time and delivered no job,
	// the next call may have less. Default: nil, only the sinks of SAMEKEY_SINKS.
	Sinks jobs.Route
	// FairBy returns the unit of a job, such as its tenant, for the fair queues of SQS:
	// while consumers are busy with one unit's messages, a standard queue delivers the
	// messages of other units first. This also holds if a standard topic passes the
	// messages to the queue. "" means no unit. FairBy applies to the standard queues
	// and topics of SAMEKEY_SINKS. FIFO queues and topics use the job's group instead.
	// nil: no job has a unit.
	FairBy func(jobs.Delivery) string
	// WithoutTenant contains the kinds of jobs whose function in SAMEKEY_SINKS has no
	// tenant isolation: the worker invokes that function without a tenant. To any other
	// function the worker passes the tenant of the operation that staged the job, if
	// the operation has one.
	WithoutTenant []string

	// Former maps the former name of each renamed function to its present name. The
	// worker sends abandoned operations under the former name to the renamed function.
	// The function completes them only if its HandlerOptions.Accepts lists the former
	// name. A present name is a name in SAMEKEY_FUNCTIONS, without its qualifier, or a
	// name in Resume. nil: no function was renamed.
	Former map[string]string
	// Resume maps a function's name, as records store it (idem.Options.Function), to
	// code that completes the function's abandoned operations in this program. The code
	// calls [idem.Engine.Resume]. Use Resume for handlers that aren't Lambda functions;
	// SAMEKEY_FUNCTIONS lists the Lambda functions. nil: the worker completes no
	// operations in this program.
	//
	// [idem.Engine.Resume]: https://pkg.go.dev/github.com/samekey/samekey/idem#Engine.Resume
	Resume map[string]func(context.Context, jobs.Ticket) error

	// Keys opens the args of sealed jobs. Keys replaces the variable SAMEKEY_KMS_KEYS,
	// which New refuses even if Keys is nil. nil: sealed jobs wait.
	Keys seal.Provider
	// Telemetry adds traces of the deliveries, and sends metrics to OpenTelemetry as well as
	// CloudWatch. Use the Telemetry of module github.com/samekey/samekey/otel. nil: no traces,
	// and metrics only for CloudWatch.
	Telemetry readyworker.Telemetry
}

// Worker is a handler for [lambda.Start]. It is safe for concurrent use.
//
// [lambda.Start]: https://pkg.go.dev/github.com/samekey/samekey/lambda#Start
type Worker struct {
	handler interface {
		Invoke(context.Context, []byte) ([]byte, error)
	}
}

// New returns a worker with the settings of the environment variables and of optFns. The
// error has a line for each variable that is missing or wrong. But if IDEM_TABLE is
// malformed, or a present name in Former is unknown, the error may say so only once the
// other faults are corrected.
func New(optFns ...func(*Options)) (*Worker, error) {
	var opt Options
	for _, fn := range optFns {
		fn(&opt)
	}
	h, err := readyworker.New(os.Environ(), nil, readyworker.Settings(opt))
	if err != nil {
		return nil, err
	}
	return &Worker{h}, nil
}

// Invoke implements the runtime's Handler. It handles events of the table's stream, events of the
// tickets' queue, and scheduled events. An event of another source is an error.
func (w *Worker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return w.handler.Invoke(ctx, payload)
}
