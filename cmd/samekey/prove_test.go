package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run that can't begin makes nothing, and says why in a sentence.
func TestProveThatCantBegin(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"an argument":           {[]string{"eu-west-1"}, 2, "is not a flag"},
		"no money":              {[]string{"--local", "--max-dollars", "0"}, 2, "have to be positive"},
		"too little money":      {[]string{"--local", "--max-dollars", "0.01"}, 2, "--max-dollars is 0.01"},
		"nothing to keep":       {[]string{"--local", "--keep"}, 2, "leaves nothing behind"},
		"no answer":             {[]string{"--local"}, 2, "nothing was made; --yes answers the question"},
		"no account to examine": {nil, 2, "no region"},
	} {
		t.Setenv("AWS_CONFIG_FILE", "/dev/null")
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
		t.Setenv("AWS_PROFILE", "")
		t.Setenv("AWS_REGION", "")
		t.Setenv("AWS_DEFAULT_REGION", "")
		code, _, stderr := call(t, nil, append([]string{"prove"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.says) {
			t.Errorf("%s: %d, %s", name, code, stderr)
		}
	}
}

// Without credentials nothing is made, and a sentence says so.
func TestProveWithoutCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "",
	} {
		t.Setenv(name, value)
	}
	if code, _, stderr := call(t, nil, "prove", "--yes"); code != 2 || !strings.Contains(stderr, "credentials") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%d, %s", code, stderr)
	}
}

// A report that somebody sends is checked by one line, and an exit code.
func TestProveCheck(t *testing.T) {
	t.Parallel()
	const example = "../../proof/prove/samekey-proof.json"
	if code, stdout, stderr := call(t, nil, "prove", "--check", example); code != 0 || !strings.Contains(stdout, "holds: ") || !strings.Contains(stdout, "0 failed") || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%d, %s%s", code, stdout, stderr)
	}
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "alone.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := call(t, nil, "prove", "--check", file); code != 3 || stdout != "" || !strings.Contains(stderr, "doesn't hold: the Markdown file isn't beside it") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := call(t, nil, "prove", "--check", "prove_test.go"); code != 2 || !strings.Contains(stderr, "is no report of samekey prove") {
		t.Errorf("%d, %s", code, stderr)
	}
}

// The plan says what would be made, and at what cost; the templates and the policy are printed.
func TestProveDryRun(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, nil, "prove", "--local", "--dry-run")
	if code != 0 || !strings.Contains(stderr, "dollars, and removes all of it") || !strings.Contains(stdout, `"Sid": "Nameless"`) || !strings.Contains(stdout, "SemanticsTable:") || !strings.Contains(stdout, "WorkerTickets:") {
		t.Errorf("%d, %s, %s", code, stderr, stdout)
	}
}
