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
// since Lambda may freeze the process afterwards. Besides metrics the line has properties to
// search the logs by: the record's short name, the operation's id, the route, the events, and the
// durations of phases by name. An invocation of a handler in [Metrics.Wrap] has one line for
// everything else. If you don't use Wrap, each event of a stream and each call of the stream's
// store has a separate line.
//
// No line has a key, a body, an answer, an error's text or the arguments of a job.
//
// # Dimensions
//
// The metrics are in the namespace Samekey under the dimension App. If [Options.Routes] is set,
// they are also under App and Route. docs/operate/signals.md#metrics lists the metrics with their
// units.
package metrics
