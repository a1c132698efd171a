package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// called runs the program in this process. Its account is in memory; nil: there is none.
func called(t *testing.T, c *cloud, typed, args string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	o := outside{strings.NewReader(typed), &out, &said, func(context.Context, string, string) (aws.Config, error) {
		if c == nil {
			return aws.Config{}, errors.New("no region")
		}
		return c.config(), nil
	}}
	code = run(t.Context(), o, strings.Fields(args))
	return code, out.String(), said.String()
}

// A run that can't begin makes nothing, and says why in a sentence.
func TestRunThatCantBegin(t *testing.T) {
	t.Parallel()
	const limits, leaves = "--max-dollars and --limit must be above 0", "--local leaves nothing behind: omit --keep and --clean"
	for args, says := range map[string]string{
		"eu-west-1":                       `unexpected argument "eu-west-1"`,
		"--local --max-dollars 0":         limits,
		"--local --limit -1s":             limits,
		"--local --yes --max-dollars .01": " dollars, and --max-dollars is 0.01",
		"--local --keep":                  leaves,
		"--local --clean":                 leaves,
		"--local":                         "not confirmed: nothing was made (--yes skips the question)",
		"--yes":                           "no region",
		"--clean":                         "no region",
		"--check main_test.go":            "main_test.go is no report: invalid character 'p' looking for beginning of value",
	} {
		if code, stdout, stderr := called(t, nil, "n\n", args); code != exitWrong || stdout != "" || !strings.HasSuffix(stderr, says+"\n") {
			t.Errorf("%s: got exit code %d, %s%s, want %s", args, code, stdout, stderr, says)
		}
	}
}

// The region and the credentials are looked for as by AWS's own tools.
func TestCredentials(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "",
	} {
		t.Setenv(name, value)
	}
	for region, want := range map[string]string{"": "no Region: ", "eu-west-1": "no credentials: "} {
		if _, err := credentials(t.Context(), region, ""); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("in %q: got %v, want %s", region, err, want)
		}
	}
}

// The plan says what would be made, and at what cost; the policy and the templates are printed.
func TestDryRun(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := called(t, newCloud(), "", "--dry-run")
	want := fmt.Sprintf("%s\n%s\n%s\n", Policy("eu-west-1"), Template(true), Nested(true))
	if code != 0 || stdout != want || !strings.Contains(stderr, "account 123456789012, Region eu-west-1") || !strings.Contains(stderr, "dollars, and removes all of it") {
		t.Errorf("got exit code %d, %s, %s", code, stderr, stdout)
	}
}

// A run that comes to no stack is reported with its reason.
func TestRunThatEndsEarly(t *testing.T) {
	t.Chdir(t.TempDir())
	code, stdout, stderr := called(t, nil, "", "--local --yes --source "+t.TempDir())
	if want := fmt.Sprintf("0 claims passed, 0 failed, %d not shown, ended early", len(Claims())); code != exitFound || !strings.Contains(stdout, want) {
		t.Errorf("got exit code %d, %s, want %s", code, stdout, want)
	}
	if r, _, err := Check(JSONFile, time.Now()); err != nil || !strings.HasPrefix(r.Trouble, "proof can't be built: ") || !strings.Contains(stderr, "prove: proof can't be built: ") {
		t.Errorf("%+v, %v, %s", r, err, stderr)
	}
}

// A report that somebody sends is checked by one line, and an exit code.
func TestCheckOfAReport(t *testing.T) {
	t.Parallel()
	r := checkedExample(t)
	good := r.Line()
	failed := filepath.Join(t.TempDir(), JSONFile)
	r.Claims[0].Status, r.Claims[0].Figure, r.Claims[0].Why = Failed, "", "it was seen"
	if err := r.Write(filepath.Dir(failed)); err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "alone.json")
	if raw, err := os.ReadFile(example); err != nil || os.WriteFile(alone, raw, 0o600) != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]struct {
		code int
		says string
	}{
		example: {exitDone, " holds: " + good}, failed: {exitFailed, " holds: " + r.Line()}, alone: {exitFound, " doesn't hold: the Markdown file isn't beside it"},
	} {
		if code, stdout, stderr := called(t, nil, "", "--check "+file); code != want.code || !strings.Contains(stdout+stderr, file+want.says) {
			t.Errorf("%s: got exit code %d, %s%s, want %d, %s", file, code, stdout, stderr, want.code, want.says)
		}
	}
}

// What runs have left is removed when it has expired or is named, and somebody agrees.
func TestClean(t *testing.T) {
	t.Parallel()
	const all = "late lost old older"
	for _, tt := range []struct {
		args, typed, denied string
		code                int
		says, left          string
	}{
		{"", "y\n", "", exitDone, "samekey-prove-late may be running until ", "late lost"},
		{"", "n\n", "", exitWrong, "nothing was removed", all},
		{"--yes samekey-prove-lost samekey-prove-late", "", "", exitDone, "removed samekey-prove-lost", ""},
		{"--yes samekey-prove-old samekey-prove-none", "", "", exitFailed, "nothing is left of samekey-prove-none", all},
		{"--yes", "", "GetCallerIdentity", exitFailed, "doesn't say whose the credentials are", all},
		{"--yes", "", "ListBuckets", exitFailed, "AccessDenied", all},
		{"--yes", "", "DeleteBucket", exitFound, "samekey-prove-old: ", all},
	} {
		c := newCloud()
		for name, later := range map[string]time.Duration{"old": -time.Minute, "older": -time.Hour, "late": time.Minute} {
			run := Prefix + name
			c.buckets[run] = &bucket{tags: map[string]string{tagRun: run, tagExpires: time.Now().Add(later).UTC().Format(time.RFC3339)}, keys: map[string]bool{"a": true}}
		}
		c.buckets[Prefix+"lost"] = &bucket{tags: map[string]string{tagRun: Prefix + "lost"}}
		c.before = func(_ int, op string) error {
			if op == tt.denied {
				return refusal("AccessDenied", "no")
			}
			return nil
		}
		code, stdout, stderr := called(t, c, tt.typed, "--clean "+tt.args)
		left := strings.ReplaceAll(strings.Join(slices.Sorted(maps.Keys(c.buckets)), " "), Prefix, "")
		if code != tt.code || !strings.Contains(stdout+stderr, tt.says) || left != tt.left {
			t.Errorf("%s, %q, %s denied: got exit code %d, left %q, %s%s; want %d, left %q, %s", tt.args, tt.typed, tt.denied, code, left, stdout, stderr, tt.code, tt.left, tt.says)
		}
	}
}
