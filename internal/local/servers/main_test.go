package servers

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// envHelper makes this test binary a program of its own: what the tests about
// processes start.
const envHelper = "LOCALSERVER_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(envHelper) {
	case "wait": // until standard input ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "serve": // on the address given, and say so
		fmt.Fprintln(os.Stderr, "serving")
		fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Args[1], http.NotFoundHandler()))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const newJava = `echo 'openjdk version "17.0.15" 2025-04-15' >&2`

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
