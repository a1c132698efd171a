package main

import (
	"cmp"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(env environment) *cobra.Command {
	return exitCodes(&cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the library that it has",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			return env.say("samekey %s, with the library %s", versionIn(info), libraryIn(info))
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

// libraryIn is the version of the library, the root module, in a program. A checkout's is in a folder.
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
