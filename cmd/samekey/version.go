package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(env environment) *cobra.Command {
	return exitCodes(&cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return env.say("samekey %s", version())
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
