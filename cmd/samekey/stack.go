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
		Short: "Write the template of table, worker, alarms and dashboard",
		Long: `Writes a CloudFormation template to FILE (default: ` + deploy.File + `). The template has the
table, the worker, the worker's queue, alarms and a dashboard; your SAM template nests it. If
FILE exists with other content, stack doesn't change FILE; with --update, it overwrites FILE.
See docs/operate/deploying.md.`,
		Args: takes(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if check && update {
				return wrongCallf("give --check or --update, not both")
			}
			file, want := deploy.File, deploy.Nested()
			switch {
			case standalone && terraform:
				return wrongCallf("give --standalone or --terraform, not both")
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
	flags.BoolVar(&check, "check", false, "don't write: print the first line in which FILE differs from the template")
	flags.BoolVar(&update, "update", false, "overwrite FILE if it differs from the template")
	flags.BoolVar(&standalone, "standalone", false, "write a CloudFormation template that takes the worker's program from a bucket, not from a local folder")
	flags.BoolVar(&terraform, "terraform", false, "write a Terraform module with the same resources (default FILE: "+terraformFile+")")
	return exitCodes(cmd, map[int]string{exitDone: "FILE is written, or was up to date", exitFailed: "failed, or FILE differs from the template"})
}

func writeStack(env environment, file, want string, check, update bool) error {
	text, err := os.ReadFile(file)
	missing := errors.Is(err, fs.ErrNotExist)
	// git may have written Windows line ends
	got := strings.ReplaceAll(string(text), "\r\n", "\n")
	switch {
	case err != nil && !missing:
		return err
	case !missing && got == want:
		return env.say("%s is up to date", file)
	case missing && check:
		return fmt.Errorf("%s does not exist: run samekey stack to write it", file)
	case check:
		return fmt.Errorf("%s differs from this version's template at %s", file, firstDifference(got, want))
	case !missing && !update:
		return fmt.Errorf("%s differs from this version's template and was not changed; give --update to overwrite it. First difference: %s", file, firstDifference(got, want))
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a folder of the module
		return err
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil { //nolint:gosec // a template, for all who work on the module
		return err
	}
	return env.say("wrote %s", file)
}

// firstDifference describes the first line in which two texts differ.
func firstDifference(got, want string) string {
	have, must := strings.Split(got+"\n", "\n"), strings.Split(want+"\n", "\n")
	i := 0
	for i < len(have)-1 && i < len(must)-1 && have[i] == must[i] {
		i++
	}
	return fmt.Sprintf("line %d:\n- %s\n+ %s", i+1, have[i], must[i])
}
