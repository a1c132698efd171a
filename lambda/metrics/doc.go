// Package metrics counts what happens, as log lines in CloudWatch's embedded metric
// format: CloudWatch makes metrics of them, without a call.
//
//	m := metrics.New(os.Stdout, "orders")
//	engine := idem.New(store, func(o *idem.Options) { o.Hooks = m.Hooks() })
//	drain := stream.NewDrain(store, sinks, func(o *stream.DrainOptions) { o.Hooks = m.StreamHooks() })
//
// A line has the metric, and properties to search the logs by: the record's short
// name, the operation's id, the route. It never has a key, a body, an answer or the
// arguments of a job.
//
// The metrics are in the namespace [Namespace], under the one dimension App.
// [All] lists them.
package metrics
