// Package worker is the program cmd/samekey-worker for a main of your own, which a sink of
// your own, another provider of data keys, or traces need. It has the same environment
// variables (docs/operate/background.md#its-settings), metrics and log lines, so samekey.yaml
// deploys it as well:
//
//	w, err := worker.New(func(o *worker.Options) {
//		o.Sinks = jobs.Route{"send_receipt": jobs.SinkFunc(send)}
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	lambda.Start(w)
//
// Without options, deploy cmd/samekey-worker.
package worker

import (
	"context"
	"os"

	"github.com/samekey/samekey/idem/jobs"
	"github.com/samekey/samekey/internal/background/readyworker"
	"github.com/samekey/samekey/seal"
)

// Options are what no environment variable can say; the zero value is the ready program.
type Options struct {
	// Sinks take the jobs of their kinds, beside the sinks of SAMEKEY_SINKS. New refuses a
	// kind that both have. Each sink has 5 seconds for a batch.
	Sinks jobs.Route
	// FairBy returns the tenant of a job, or another unit that must not delay others when it is
	// busy: a standard queue, or one behind a standard topic, delivers the other units' messages
	// first (fair queues). "" means no unit. It concerns SAMEKEY_SINKS; FIFO queues use the
	// job's group. nil: no job has a unit.
	FairBy func(jobs.Delivery) string
	// WithoutTenant has the kinds of jobs whose function in SAMEKEY_SINKS has no tenant
	// isolation: it is invoked for no tenant. Other functions are invoked for the tenant of the
	// operation that staged the job, if it has one.
	WithoutTenant []string

	// Former has the former names of functions, and by them the present names: a function that
	// was renamed completes the operations that it began under its former name, if its
	// HandlerOptions.Accepts has that name. Present names are those of SAMEKEY_FUNCTIONS,
	// without a qualifier, and of Resume.
	Former map[string]string
	// Resume completes abandoned operations in this program, by the function that their
	// records name (idem.Options.Function): [idem.Engine.Resume] with the handler's code. It is
	// for handlers that aren't Lambda functions; SAMEKEY_FUNCTIONS has the others.
	//
	// [idem.Engine.Resume]: https://pkg.go.dev/github.com/samekey/samekey/idem#Engine.Resume
	Resume map[string]func(context.Context, jobs.Ticket) error

	// Keys opens the args of sealed jobs, in place of SAMEKEY_KMS_KEYS. nil: such jobs wait.
	Keys seal.Provider
	// Telemetry traces the deliveries and counts beside the metrics of CloudWatch: the
	// Telemetry of module github.com/samekey/samekey/otel. nil: deliveries have no spans.
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

// New returns the worker of the environment's variables. An error has a line for each variable
// that is missing or wrong.
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

// Invoke implements the runtime's Handler: it works on an event of the table's stream, of the
// queue of tickets or of a schedule. An event of another source is an error.
func (w *Worker) Invoke(ctx context.Context, payload []byte) ([]byte, error) {
	return w.handler.Invoke(ctx, payload)
}
