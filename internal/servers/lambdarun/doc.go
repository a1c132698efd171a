// Package lambdarun runs real Go Lambda bootstraps on one machine, without
// Docker.
//
// [Start] returns a function that runs a bootstrap, as Lambda does. A bootstrap is a
// binary for the runtime provided.al2023, built by [BuildBootstrap] or by the go build
// of the deployed function. Concurrent invocations run in separate processes, called
// sandboxes. Later invocations reuse the processes. As on Lambda Managed Instances, a
// process can also run several invocations at a time ([Config.PerProcess]). If the
// function separates tenants ([Config.PerTenant]), no process works for two tenants.
// Every sandbox has its own Runtime API on 127.0.0.1.
//
// [InProcess] needs no binary: it runs a handler inside this program.
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
// # Like Lambda
//
// If a handler returns an error, the process continues. If the handler panics, or the
// process exits or is killed, the next invocation starts a new process. At the deadline
// of an invocation, its process is killed without warning. An invocation that has begun
// continues after its caller has gone. A caller beyond the concurrency limit is
// throttled, not queued. Payload limits are Lambda's. A process gets Lambda's
// environment variables and the variables of the configuration, but not the variables
// of this program.
//
// If PerProcess is above 1, a process runs that many invocations at a time. The process
// reads the number from AWS_LAMBDA_MAX_CONCURRENCY. At a deadline only the invocation
// fails, and the process continues. A late answer is accepted and discarded.
//
// # Unlike Lambda
//
// A sandbox is a plain process, without a memory limit or its own file system. A
// sandbox is not frozen between invocations, so a goroutine that a handler leaves
// behind continues. Lambda would stop the goroutine. Processes that a handler starts
// are not killed with the sandbox. Asynchronous invocation, extensions, response
// streaming and credentials are not emulated; nothing is retried.
package lambdarun
