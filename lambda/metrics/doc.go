// Package metrics writes metrics as log lines in CloudWatch's embedded metric format. CloudWatch
// reads metrics from the log, so the program makes no calls for them.
//
//	m := metrics.New(os.Stdout, "orders")
//	engine := idem.New(store, func(o *idem.Options) { o.Hooks = m.Hooks() })
//
// The worker (package lambda/worker) always writes metrics. [Metrics.StoreHooks] counts a store's
// calls outside of requests.
//
// To add other hooks, such as logs, combine hooks with [idem.Join] and [dynamo.Join]:
//
//	o.Hooks = idem.Join(m.Hooks(), idem.Log(logger), mine)
//
// # Lines
//
// A request has one line. It is written when the request ends and before the answer is returned,
// since Lambda may freeze the process afterwards. Besides metrics the line has properties to search
// the logs by: the record's short name, the operation's id, the route, the events, and the
// durations of phases by name. If you wrap the function's handler with [Metrics.Wrap], each
// invocation has one more line, for the stream events and store calls outside of requests. If you
// don't use Wrap, each of these events and calls has a separate line.
//
// No line has a key, a body, an answer, an error's text or the arguments of a job.
//
// # Dimensions
//
// The metrics are in the namespace Samekey under the dimension App. If [Options.Routes] is set,
// they are also under App and Route. docs/operate/signals.md#metrics lists the metrics with their
// units.
package metrics
