// Command evidence runs the proofs and writes docs/inside/proof.md from what they print:
// no figure of the page is written by hand.
//
//	go run -C proof ./evidence                 # everything: hours
//	go run -C proof ./evidence -only '^model$' # the claims that match
//	go run -C proof ./evidence -only '^$'      # the page alone, from proof/evidence/evidence.json
//
// A proof prints its figures as a line EVIDENCE {"name": …, …}, or in a line that the
// claim's expression finds. They are kept in proof/evidence/evidence.json, with the command, the
// date and the commit; a claim that isn't run keeps its last run. The command exits
// with 1 if a proof fails or prints no figures; the other runs are kept.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/samekey/samekey/proof/internal/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "evidence:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, progress io.Writer) error {
	flags := flag.NewFlagSet("evidence", flag.ContinueOnError)
	only := flags.String("only", "", "a regular expression: the claims to prove; all by default")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	root, err := harness.Root(ctx)
	if err != nil {
		return err
	}
	runs, err := load(root)
	if err != nil {
		return err
	}
	var failed error
	for _, c := range claims {
		if !wanted.MatchString(c.name) {
			continue
		}
		r, err := c.prove(ctx, root, progress)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", c.name, err))
			continue
		}
		runs[c.name] = r
		if err := save(root, runs); err != nil {
			return err
		}
	}
	return errors.Join(failed, save(root, runs))
}

// prove runs a claim's command.
func (c claim) prove(ctx context.Context, root string, progress io.Writer) (proof, error) {
	commit, err := harness.Commit(ctx, root, "--short=12")
	if err != nil {
		return proof{}, err
	}
	changed, err := harness.Output(ctx, "git", "-C", root, "status", "--porcelain", "--", ".", ":!docs", ":!"+runsFile, ":!"+tablesFile)
	if err != nil {
		return proof{}, err
	}
	if changed != "" {
		commit += ", changed"
	}
	fmt.Fprintln(progress, "==", c.command)
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", c.command)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, io.MultiWriter(&out, progress), progress
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return proof{}, err
	}
	figures, table, err := c.read(out.String())
	return proof{Command: c.command, Commit: commit, Date: began.UTC().Format(time.DateOnly), Figures: figures, Table: table}, err
}
