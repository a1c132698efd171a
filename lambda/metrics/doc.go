// Package metrics writes metrics as log lines in CloudWatch's embedded metric format.
// CloudWatch reads the metrics from the log, so the program makes no calls for them.
//
//	m := metrics.New(os.Stdout, "orders")
//	engine := idem.New(store, func(o *idem.Options) { o.Hooks = m.Hooks() })
//
// The worker (package lambda/worker) always writes metrics. [Metrics.StoreHooks] counts
// a store's calls outside of requests.
//
// To add other hooks, such as logs, combine hooks with [idem.Join] and [dynamo.Join]:
//
//	o.Hooks = idem.Join(m.Hooks(), idem.Log(logger), mine)
//
// # Lines
//
// A request that runs under a key, is replayed or is refused writes one line when it
// ends. So does each try of a completer. For [idem.ModeObserve] and [idem.ModeOff] see
// [Metrics.Hooks]. The line is written before the answer is returned, because Lambda
// may freeze the process afterwards. Besides metrics the line has properties, by which
// you can search the logs: the record's short name, the operation's id, the route, the
// events, the status, and the duration of each phase.
//
// Stream events happen outside of requests, and store calls may. If you wrap the
// function's handler with [Metrics.Wrap], one more line for each invocation sums up
// these events and calls. Without Wrap, each of them has a separate line.
//
// No line has a key, a body, an answer, an error's text or the arguments of a job.
//
// # Dimensions
//
// The metrics are in the namespace Samekey under the dimension App. If [Options.Routes]
// is set, the metrics of requests are also under App and Route.
// docs/operate/signals.md#metrics lists the metrics with their units.
package metrics
