package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// envHelper makes this test binary a program of its own: what the tests about
// processes start.
const envHelper = "DYNAMOTEST_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(envHelper) == "find" {
		helperFind()
		return
	}
	code := Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// helperFind finds a database, prints its endpoint and waits until its standard
// input ends, without closing the database.
func helperFind() {
	db, err := Find(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(db.Endpoint)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// findOwn finds a database that is not an endpoint of the environment, for
// tests that end it. They skip where Start would.
func findOwn(t *testing.T) *DB {
	t.Helper()
	t.Setenv(envEndpoint, "")
	db := new(sharedDB).start(t, Find)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// commands makes a folder of shell scripts, by their names.
func commands(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bare gives the test an environment in which Find finds nothing but the
// scripts.
func bare(t *testing.T, scripts map[string]string) {
	t.Helper()
	for _, name := range []string{envEndpoint, envAllowRemote, envAllInterfaces, envRequire, "JAVA_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv(envCache, t.TempDir())
	t.Setenv("PATH", commands(t, scripts))
}

// findNothing returns the lines of the error that Find must answer with.
func findNothing(t *testing.T) []string {
	t.Helper()
	db, err := Find(t.Context())
	if err == nil {
		t.Fatalf("Find got %s, want an error", db.Endpoint)
	}
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Find: got %v, want ErrUnavailable", err)
	}
	lines := strings.Split(err.Error(), "\n  ")
	return lines[1:]
}

// commandPath is the folder of scripts that bare made.
func commandPath() string { return os.Getenv("PATH") }
