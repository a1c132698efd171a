// Package lambdarun runs real Go Lambda bootstraps on one machine, without
// Docker.
//
// [Start] takes the path of a custom-runtime binary (provided.al2023, built by
// [BuildBootstrap] or by the same go build that makes the deployed one) and
// runs it as Lambda does: one process, a sandbox, for each concurrent
// invocation, reused while it lives; or, as on Lambda Managed Instances, one
// process for several ([Config.PerProcess]); and no process for two tenants, where
// the function keeps them apart ([Config.PerTenant]). Every sandbox talks to a Runtime API of
// its own on 127.0.0.1. [InProcess] runs a handler of this program instead.
//
//	fn, err := lambdarun.Start(ctx, lambdarun.Config{Binary: "dist/api/bootstrap"})
//	if err != nil {
//		return err
//	}
//	defer fn.Close()
//	server := &http.Server{Addr: "127.0.0.1:8080", Handler: apigateway.HTTPAPI(fn)}
//
// Packages apigateway and eventsource invoke any [Invoker].
//
// # What is as in Lambda
//
// With PerProcess the process runs as many invocations at a time, is told so in
// AWS_LAMBDA_MAX_CONCURRENCY, and is not killed at a deadline: only that
// invocation has failed. What is late is taken and thrown away.
//
// A function that returns an error keeps its process; one that panics, exits or
// is killed loses it, and the next invocation starts a fresh one. At the
// deadline the process is killed without warning. An invocation once begun runs
// on when its caller has gone. A caller beyond the concurrency limit is
// throttled, not queued. Payload limits are Lambda's. The child sees Lambda's
// environment variables and those of the configuration, nothing of its parent's.
//
// # What is not
//
// A sandbox is a plain process: no memory limit, no file system of its own, and
// it is not frozen between invocations, so a goroutine left behind by a handler
// runs on where Lambda would have stopped it. Processes that a handler starts
// are not killed with it. Asynchronous invocation, extensions, response
// streaming and credentials are not emulated; nothing is retried.
package lambdarun
