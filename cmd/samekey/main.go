// Command samekey runs, inspects and repairs Samekey applications. docs/use/cli.md lists
// the commands with their flags and exit codes.
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/spf13/cobra"
)

// environment holds a command's connections to the outside.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer // wrapped by safe
	screen         io.Writer // stderr without the wrapper, for progress's control characters and for logs of functions
	getenv         func(string) string
	terminal       bool             // stderr is a terminal
	now            func() time.Time // time.Now if nil
	http           aws.HTTPClient   // client for requests to AWS; the SDK's default if nil
}

func main() {
	vetTool(os.Args[1:])
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// After the first signal, stop restores the usual handling of signals, so a second signal ends
	// the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, environment{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, terminal: isTerminal(os.Stderr),
	}, os.Args[1:]))
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// run executes one command and returns its exit code. The command ends when ctx ends.
func run(ctx context.Context, env environment, args []string) int {
	if env.now == nil {
		env.now = time.Now
	}
	env = env.safe()
	root := newRoot(env) //nolint:contextcheck // commands get the context when they run
	root.SetArgs(doubleDashed(root, args))
	cmd, err := root.ExecuteContextC(ctx)
	return tellExit(env, cmd, err)
}

// The groups of the commands in the help.
const (
	groupBuild   = "build"
	groupOperate = "operate"
)

// newRoot makes the tree of commands. Each command has a file of its own.
func newRoot(env environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "samekey",
		Short:         "Run, inspect and repair Samekey applications",
		Version:       fmt.Sprintf("%s, with the library %s", version(), libraryVersion()),
		SilenceErrors: true, // tellExit prints them
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE:          noCommand,
	}
	root.SetVersionTemplate("samekey {{.Version}}\n")
	root.SetOut(env.stdout)
	root.SetErr(env.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return wrongCallf("%w%s", err, nearestFlag(cmd, err)) })
	root.SetUsageTemplate(root.UsageTemplate() + exitCodesUsage)
	root.AddGroup(
		&cobra.Group{ID: groupBuild, Title: "Build and test:"},
		&cobra.Group{ID: groupOperate, Title: "Operate:"},
	)
	for _, c := range []*cobra.Command{newInit(env), newLocal(env), newStack(env), newCheck(env), newVet(env)} {
		c.GroupID = groupBuild
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{
		newGet(env), newList(env), newRetry(env), newSettle(env), newRelease(env), newForget(env), newErase(env), newRedrive(env), newCancel(env), newSweep(env), newUI(env),
		newDoctor(env),
	} {
		c.GroupID = groupOperate
		root.AddCommand(c)
	}
	root.AddCommand(newReference(env))
	plainUse(root)
	exemplify(root)
	return root
}

// version returns the version of this program.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionIn(info)
}

// versionIn returns the version of a program; info is nil if the program was built without modules.
func versionIn(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}

// libraryVersion returns the version of the library in this program.
func libraryVersion() string {
	info, _ := debug.ReadBuildInfo()
	return libraryIn(info)
}

// libraryIn returns the version of the library (the root module) in a program; "(devel)"
// if go.mod replaces the module by a folder.
func libraryIn(info *debug.BuildInfo) string {
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == "github.com/samekey/samekey" {
				return cmp.Or(cmp.Or(m.Replace, m).Version, "(devel)")
			}
		}
	}
	return "(unknown)"
}

// plainUse keeps cobra from adding "[flags]" to usage lines.
func plainUse(cmd *cobra.Command) {
	cmd.DisableFlagsInUseLine = true
	for _, sub := range cmd.Commands() {
		plainUse(sub)
	}
}

func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return wrongCallf("unknown command %s%s; samekey help lists the commands", args[0], didYouMean(cmd, args[0]))
	}
	cmd.SetOut(cmd.ErrOrStderr())
	_ = cmd.Usage() // an error of stderr can't be reported
	return wrongCall(nil)
}
