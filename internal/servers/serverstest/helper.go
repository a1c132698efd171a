// Package serverstest has what the tests of packages servers, dynamotest and
// elasticmq share: fake commands, processes that are killed, and tests that end
// early.
package serverstest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// NewJava is a script for [Commands]: a fake java command whose version is new enough.
const NewJava = `echo 'openjdk version "17.0.15" 2025-04-15' >&2`

// Commands puts shell scripts, keyed by name, into a folder and returns the folder's path.
func Commands(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Bare prepares the test's environment. It sets the variable named cache to an empty
// folder, empties JAVA_HOME and the listed variables, and sets PATH so that the scripts
// are the only commands.
func Bare(t *testing.T, cache string, scripts map[string]string, variables ...string) {
	t.Helper()
	for _, name := range append(variables, "JAVA_HOME") {
		t.Setenv(name, "")
	}
	t.Setenv(cache, t.TempDir())
	t.Setenv("PATH", Commands(t, scripts))
}

// envHelper is the environment variable that makes a test binary run [HelperMain].
const envHelper = "SERVERSTEST_HELPER"

// HelperMain is the program that [EndsWithAKilledParent] kills. TestMain calls
// HelperMain. In a test process HelperMain does nothing and returns false. In the
// killed process it starts a server by find, prints the endpoint, and returns true when
// standard input ends. It doesn't end the server.
func HelperMain(find func(context.Context) (endpoint string, err error)) bool {
	if os.Getenv(envHelper) == "" {
		return false
	}
	endpoint, err := find(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, endpoint)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return true
}

// EndsWithAKilledParent checks that a server ends when the process that started it is
// killed. endpoint names the environment variable of an endpoint; the process gets an
// empty one, so that it starts a server. dir is the folder of the server's install.
func EndsWithAKilledParent(t *testing.T, endpoint, dir string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envHelper+"=1", endpoint+"=")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if line = strings.TrimSpace(line); line == "" {
		_ = cmd.Wait()
		t.Fatal("the helper printed no endpoint")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // "signal: killed"
	WaitEnd(t, line)

	// the killed helper couldn't remove its temporary folder
	left, err := filepath.Glob(filepath.Join(dir, "tmp-"+strconv.Itoa(cmd.Process.Pid)+"-*"))
	if err != nil || len(left) > 1 {
		t.Errorf("the helper left %v (%v), want one folder at most", left, err)
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
}

// WaitEnd waits until nothing listens at the endpoint any more.
func WaitEnd(t *testing.T, endpoint string) {
	t.Helper()
	// long, since it passes only if the test fails
	deadline := time.Now().Add(10 * time.Minute)
	for {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(endpoint, "http://"))
		if err != nil {
			return
		}
		// a closed connection doesn't prove that the server has ended, because a
		// running server also closes idle connections: dial again
		_ = conn.SetReadDeadline(deadline)
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the server at %s lives: read got %v", endpoint, err)
		}
	}
}

// Loopback returns two lists of addresses in the form of /proc/net/tcp. got has the
// addresses on which processes listen at the endpoint's port. want has the only allowed
// address, 127.0.0.1 with that port. Loopback reads /proc itself, without calling the
// code under test. It skips the test outside Linux, and on s390x, whose big-endian
// addresses look different.
func Loopback(t *testing.T, endpoint string) (got, want []string) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH == "s390x" {
		t.Skip("the kernel's tables are read on Linux only, on little-endian machines")
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	suffix := fmt.Sprintf(":%04X", port)
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
				got = append(got, f[1])
			}
		}
	}
	return got, []string{"0100007F" + suffix}
}
