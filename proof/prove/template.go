package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/samekey/samekey/deploy"
)

//go:embed stack.yaml
var local string

// Template returns the stack's template: for this machine, where the program is in a folder
// beside it, or packaged, for a bucket.
func Template(packaged bool) string {
	if packaged {
		return exchanged(local, "    CodeUri: dist/program/\n", "    CodeUri: {Bucket: !Ref CodeBucket, Key: "+codeKey+"}\n")
	}
	return exchanged(local, "        CodeBucket: !Ref CodeBucket\n", "")
}

// Nested returns the stack of table and worker that users deploy, changed as a throw-away needs it:
// everything goes with the stack, the worker is the program that can be made to crash, its
// concurrency has a cap, and what waits for its end does so for seconds.
func Nested(packaged bool) string {
	t := deploy.Nested()
	if packaged {
		t = deploy.Standalone()
		t = exchanged(t, "    Description: The zip file's key. Another version of the worker needs another key.\n    Type: String\n",
			"    Description: The zip file's key.\n    Type: String\n    Default: "+codeKey+"\n")
	} else {
		t = exchanged(t, "      Code: dist/samekey-worker/\n", "      Code: dist/program/\n")
		t = exchanged(t, "      GoPackage: github.com/samekey/samekey/cmd/samekey-worker # for `samekey local`\n", "")
	}
	for _, e := range [][2]string{
		{"    DeletionPolicy: RetainExceptOnCreate\n", "    DeletionPolicy: Delete\n"},
		{"    UpdateReplacePolicy: Retain\n", "    UpdateReplacePolicy: Delete\n"},
		{"          SAMEKEY_SWEEP_PAGES:", "          SAMEKEY_SWEEP_LATE: " + sweepLate + "\n          SAMEKEY_SWEEP_PAGES:"},
		{"      Timeout: 120\n", "      Timeout: 20\n      ReservedConcurrentExecutions: 5\n"},
		{"      VisibilityTimeout: 720\n", "      VisibilityTimeout: 120\n"},
		{"      RetentionInDays: 30\n", "      RetentionInDays: 1\n"},
		{"        PointInTimeRecoveryEnabled: true\n", "        PointInTimeRecoveryEnabled: false\n"}, // a table that had it leaves a backup
		{"  DashboardName:\n    Value: !Ref Dashboard\n", ""},
	} {
		t = exchanged(t, e[0], e[1])
	}
	// A dashboard is paid for by the month.
	_, rest, _ := strings.Cut(t, "\n  # ---- The dashboard")
	dashboard, _, _ := strings.Cut(rest, "\nOutputs:\n")
	return exchanged(t, "\n  # ---- The dashboard"+dashboard+"\nOutputs:\n", "\nOutputs:\n")
}

// sweepLate is how late the stream must be in a throw-away before the sweep does its work.
const sweepLate = "5s"

// exchanged replaces a text that has to be there.
func exchanged(t, old, replacement string) string {
	if !strings.Contains(t, old) {
		panic(fmt.Sprintf("prove: the template has no %q", old))
	}
	return strings.ReplaceAll(t, old, replacement)
}
