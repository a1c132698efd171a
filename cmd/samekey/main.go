// Command samekey begins applications, runs their functions locally, settles
// operations, examines APIs and checks handlers.
//
//	samekey init    write a handler, its test, a template and CI into a module
//	samekey local   run a SAM template's functions on this machine
//	samekey stack   write the template with table, worker, alarms and dashboard
//	samekey stuck   list and settle operations that wait for people
//	samekey check   examine an HTTP API that takes idempotency keys
//	samekey vet     find mistakes in handlers with phases
//	samekey version print the version of this program
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// command is a sub-command. Each has a file of its own.
type command struct {
	name, summary string
	// run does the work and returns the exit code: 0, 1 when it failed, 2 when
	// it was called the wrong way; check also returns 3. It ends when ctx does.
	run func(ctx context.Context, env environment, args []string) int
}

// environment is what a command has of the outside.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

func commands() []command {
	return []command{initCommand, localCommand, stackCommand, stuckCommand, checkCommand, vetCommand, versionCommand}
}

func main() {
	vetTool(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program as usual.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, environment{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv}, os.Args[1:]))
}

func run(ctx context.Context, env environment, args []string) int {
	if len(args) == 0 {
		usage(env.stderr)
		return 2
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, env, args[1:])
		}
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(env.stdout)
		return 0
	case "-version", "--version":
		return runVersion(ctx, env, args[1:])
	}
	fmt.Fprintf(env.stderr, "samekey: there is no command %s\n", args[0])
	usage(env.stderr)
	return 2
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: samekey COMMAND [FLAGS]; samekey COMMAND -h tells the flags")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-8s %s\n", c.name, c.summary)
	}
}
