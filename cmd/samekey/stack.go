package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/deploy"
)

const terraformFile = "samekey.tf"

func newStack(env environment) *cobra.Command {
	var check, update, standalone, terraform bool
	cmd := &cobra.Command{
		Use:   "stack [--check | --update] [--standalone | --terraform] [FILE]",
		Short: "Write the template with table, worker, alarms and dashboard",
		Long: `Writes a CloudFormation template with the table, the worker, its queue, alarms and a
dashboard into FILE, by default ` + deploy.File + `. A SAM template nests it. A file that
differs is not overwritten without --update. See docs/operate/deploying.md.

With --check nothing is written, and the first line that differs is printed.`,
		Args: takes(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if check && update {
				return wrongCallf("--check writes nothing, --update does: give one of them")
			}
			file, want := deploy.File, deploy.Nested()
			switch {
			case standalone && terraform:
				return wrongCallf("--standalone is for CloudFormation, --terraform for Terraform: give one of them")
			case standalone:
				want = deploy.Standalone()
			case terraform:
				file, want = terraformFile, deploy.Terraform()
			}
			if len(args) == 1 {
				file = args[0]
			}
			return writeStack(env, file, want, check, update)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&check, "check", false, "compare FILE with this version, and write nothing")
	flags.BoolVar(&update, "update", false, "overwrite FILE")
	flags.BoolVar(&standalone, "standalone", false, "plain CloudFormation without local folders: the worker's program is in a bucket")
	flags.BoolVar(&terraform, "terraform", false, "a Terraform module of the same resources, by default "+terraformFile)
	return exitCodes(cmd, map[int]string{exitDone: "written, or up to date", exitFailed: "failed, or FILE differs"})
}

func writeStack(env environment, file, want string, check, update bool) error {
	text, err := os.ReadFile(file)
	missing := errors.Is(err, fs.ErrNotExist)
	// git may have given the lines the ends of Windows.
	got := strings.ReplaceAll(string(text), "\r\n", "\n")
	switch {
	case err != nil && !missing:
		return err
	case !missing && got == want:
		return env.say("%s is up to date", file)
	case missing && check:
		return fmt.Errorf("there is no %s: samekey stack writes it", file)
	case check:
		return fmt.Errorf("%s is another version; %s", file, firstDifference(got, want))
	case !missing && !update:
		return fmt.Errorf("%s is another version, and is left as it is: --update overwrites it; %s", file, firstDifference(got, want))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a folder of the module
		return err
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // a template, for all who work on the module
		return err
	}
	return env.say("wrote %s", file)
}

// firstDifference tells the first line in which two texts differ.
func firstDifference(got, want string) string {
	have, must := strings.Split(got+"\n", "\n"), strings.Split(want+"\n", "\n")
	i := 0
	for i < len(have)-1 && i < len(must)-1 && have[i] == must[i] {
		i++
	}
	return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, have[i], must[i])
}
