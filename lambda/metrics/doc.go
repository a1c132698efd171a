// Package metrics writes metrics as log lines in CloudWatch's embedded metric format,
// which CloudWatch reads from the log, without a call.
//
//	m := metrics.New(os.Stdout, "orders")
//	engine := idem.New(store, func(o *idem.Options) { o.Hooks = m.Hooks() })
//
// The worker (package lambda/worker) has its metrics on. [Metrics.StoreHooks] count a store's
// calls outside of requests.
//
// To have further hooks, such as logs, combine them with [idem.Join] and [dynamo.Join]:
//
//	o.Hooks = idem.Join(m.Hooks(), idem.Log(logger), mine)
//
// # Lines
//
// A request has one line, written when it ends and before its answer is returned, so
// that Lambda may freeze the process afterwards. Beside its metrics the line has
// properties to search the logs by: the record's short name, the operation's id, the
// route, the events, the durations of phases by name. An invocation of a handler in
// [Metrics.Wrap] has one line for everything else; without Wrap, each event of a stream
// and each call of its store has a separate line.
//
// No line has a key, a body, an answer, an error's text or the arguments of a job.
//
// # Dimensions
//
// The metrics are in the namespace Samekey under the dimension App, and with [Options.Routes]
// also under App and Route. docs/operate/signals.md#metrics lists them with their units.
package metrics
