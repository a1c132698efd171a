package main

import (
	"context"
	"fmt"
	"runtime/debug"
)

var versionCommand = command{name: "version", summary: "print the version of this program", run: runVersion}

func runVersion(_ context.Context, env environment, args []string) int {
	if len(args) > 0 {
		fmt.Fprintf(env.stderr, "samekey version: %q is not a flag; the command has none\n", args[0])
		return 2
	}
	version := "(unknown)" // built without modules
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	fmt.Fprintln(env.stdout, "samekey", version)
	return 0
}
