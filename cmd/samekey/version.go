package main

import (
	"cmp"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/prove"
)

func newVersion(env environment) *cobra.Command {
	return exitCodes(&cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the library that it has",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return env.say("samekey %s, with the library %s", version(), cmp.Or(prove.LibraryVersion(), "(unknown)"))
		},
	}, nil)
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionIn(info)
}

// versionIn is that of a program; info is nil if it was built without modules.
func versionIn(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
