package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(env environment) *cobra.Command {
	return exitCodes(&cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the library that it has",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return env.say("samekey %s, with the library %s", version(), library())
		},
	}, nil)
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	return versionIn(info)
}

// library is the version of the root module, whose rules this program has: it should be that
// of the functions.
func library() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == "github.com/samekey/samekey" {
				return m.Version
			}
		}
	}
	return "(unknown)"
}

// versionIn is that of a program; info is nil if it was built without modules.
func versionIn(info *debug.BuildInfo) string {
	if info == nil || info.Main.Version == "" {
		return "(unknown)"
	}
	return info.Main.Version
}
