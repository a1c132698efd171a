// Command ddblocal runs a command with a DynamoDB endpoint in its environment:
//
//	go run ./dynamo/dynamotest/ddblocal -- make test
//
// ddblocal finds or starts DynamoDB Local as package dynamotest does. In the command's
// environment, it sets AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL_DYNAMODB_STREAMS.
// If AWS_REGION or the credentials are unset, it sets test values for them. It forwards
// SIGINT and SIGTERM to the command. When the command ends, ddblocal stops the database
// and exits with the command's code, or with 128 + n if signal n ended the command.
//
// If no command is given, ddblocal prints the endpoint and serves until SIGINT or
// SIGTERM.
//
// If no DynamoDB is available, ddblocal prints what is missing and exits with 3. If
// -optional is set and a command is given, ddblocal instead runs the command without a
// database. It exits with 2 after wrong use, with 127 if the command can't be started,
// and with 1 after other failures of its own.
//
// Under go run, only signals that are typed at the terminal reach ddblocal. If a
// program sends signals to ddblocal, build ddblocal and run the binary.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/samekey/samekey/dynamo/dynamotest"
)

const (
	exitFailed      = 1
	exitUsage       = 2
	exitUnavailable = 3
	exitNoCommand   = 127
	exitSignal      = 128
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("ddblocal", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprintln(stderr, "usage: ddblocal [-optional] [--] [command [argument ...]]") }
	optional := flags.Bool("optional", false, "run the command also without a database")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return exitUsage
	}

	// Catch signals from here on, so that no signal ends this process while the database runs.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	db, code := find(signals, stderr)
	if code == exitUnavailable && *optional && flags.NArg() > 0 {
		return runCommand(os.Environ(), flags.Args(), signals, stdout, stderr)
	}
	if db == nil {
		return code
	}
	if flags.NArg() == 0 {
		code = serve(db, signals, stdout)
	} else {
		code = runCommand(environ(os.Environ(), db.Endpoint), flags.Args(), signals, stdout, stderr)
	}
	if err := db.Close(); err != nil {
		fmt.Fprintln(stderr, "ddblocal:", err)
		if code == 0 {
			code = exitFailed
		}
	}
	return code
}

// find finds or starts the database. It stops at a signal, because a download can take
// minutes.
func find(signals <-chan os.Signal, stderr io.Writer) (*dynamotest.DB, int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type result struct {
		db  *dynamotest.DB
		err error
	}
	found := make(chan result, 1)
	go func() {
		db, err := dynamotest.Find(ctx)
		found <- result{db, err}
	}()
	select {
	case r := <-found:
		if r.err == nil {
			return r.db, 0
		}
		fmt.Fprintln(stderr, "ddblocal:", r.err)
		if errors.Is(r.err, dynamotest.ErrUnavailable) {
			return nil, exitUnavailable
		}
		return nil, exitFailed
	case sig := <-signals:
		cancel()
		if r := <-found; r.db != nil {
			_ = r.db.Close() // ignored: the exit code reports the signal
		}
		return nil, signalCode(sig)
	}
}

// serve prints the endpoint and waits for a signal.
func serve(db *dynamotest.DB, signals <-chan os.Signal, stdout io.Writer) int {
	fmt.Fprintln(stdout, db.Endpoint)
	<-signals
	return 0
}

func runCommand(env, args []string, signals <-chan os.Signal, stdout, stderr io.Writer) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(stderr, "ddblocal:", err)
		return exitNoCommand
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			// The terminal sends a typed interrupt to the command too. Don't forward
			// the interrupt, because many programs understand a second one as "end at
			// once".
			if sig == os.Interrupt && inForeground() {
				continue
			}
			_ = cmd.Process.Signal(sig) // an error means that the command has just ended
		case err := <-ended:
			return exitCode(err, stderr)
		}
	}
}

func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		fmt.Fprintln(stderr, "ddblocal:", err)
		return exitFailed
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return signalCode(ws.Signal())
	}
	return exit.ExitCode()
}

func signalCode(sig os.Signal) int {
	if s, ok := sig.(syscall.Signal); ok {
		return exitSignal + int(s)
	}
	return exitFailed
}

// environ returns env with the variables that make AWS SDKs use the endpoint.
func environ(env []string, endpoint string) []string {
	value := map[string]string{}
	for _, kv := range env {
		if name, v, ok := strings.Cut(kv, "="); ok {
			value[name] = v
		}
	}
	env = slices.Clone(env)
	set := func(name, v string) { env = append(env, name+"="+v) } // if a name is set twice, exec.Cmd uses the last value
	set("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
	set("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", endpoint)
	if value["AWS_ENDPOINT_URL_DYNAMODB"] == "" {
		set("DYNAMOTEST_SHARED", "1")
	}
	// If this variable were true, an SDK would ignore the two endpoints and call the real service.
	set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "false")
	if value["AWS_REGION"] == "" {
		region := value["AWS_DEFAULT_REGION"]
		if region == "" {
			region = "us-east-1"
		}
		set("AWS_REGION", region)
	}
	// If the key id or the secret is missing, set both, since neither is of use without
	// the other. DynamoDB Local accepts only letters and digits in a key id.
	if value["AWS_ACCESS_KEY_ID"] == "" || value["AWS_SECRET_ACCESS_KEY"] == "" {
		set("AWS_ACCESS_KEY_ID", "dynamotest")
		set("AWS_SECRET_ACCESS_KEY", "dynamotest")
		env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "AWS_SESSION_TOKEN=") })
	}
	return env
}
