package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/testkit/fakedynamo"
)

// The page listens only on 127.0.0.1.
func TestAddressOfThePage(t *testing.T) {
	t.Parallel()
	const only = ": give an address on 127.0.0.1, such as 127.0.0.1:3004; to open the page from another machine, use an SSH tunnel"
	for addr, want := range map[string]struct {
		port int
		err  string
	}{
		"127.0.0.1:0":     {0, ""},
		"127.0.0.1:65535": {65535, ""},
		"127.0.0.1:65536": {0, "--addr 127.0.0.1:65536: 65536 is not a port"},
		"127.0.0.1:-1":    {0, "--addr 127.0.0.1:-1: -1 is not a port"},
		"127.0.0.1":       {0, "--addr 127.0.0.1" + only},
		"0.0.0.0:1":       {0, "--addr 0.0.0.0:1" + only},
		":1":              {0, "--addr :1" + only},
	} {
		port, err := loopbackPort(addr)
		if port != want.port || (err == nil) != (want.err == "") || err != nil && err.Error() != want.err {
			t.Errorf("%s: %d, %v, want %+v", addr, port, err, want)
		}
	}
}

// samekey ui serves the page, with the operator's name, until the command ends.
func TestUIServesAPage(t *testing.T) {
	someAccount(t)
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	for want, args := range map[string]string{"--newest must be above 0": "--newest 0", "--addr x: give an address": "--addr x", `unexpected argument "more"`: "more", "no table: set": "--newest 1"} {
		if code, stdout, stderr := callAt(t, &fakedynamo.Server{}, append([]string{"ui"}, strings.Fields(args)...)...); code != 2 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if code, stdout, stderr := callAt(t, &fakedynamo.Server{}, "ui", "--table", "records", "--addr", taken.Addr().String()); code != 1 || stdout != "" || !strings.Contains(stderr, "address already in use") {
		t.Errorf("code %d, %q, %q", code, stdout, stderr)
	}
	unheard := environment{stdout: full{}, stderr: io.Discard, http: &fakedynamo.Server{}, getenv: func(string) string { return "" }}
	if code := run(t.Context(), unheard, []string{"ui", "--table", "records"}); code != 1 {
		t.Errorf("code %d, nobody knows the link", code)
	}
	stdout, stderr := &safeBuffer{}, &safeBuffer{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, environment{
			stdout: stdout, stderr: stderr, http: &fakedynamo.Server{}, getenv: func(name string) string { return map[string]string{"IDEM_TABLE": "records", "USERNAME": "jane"}[name] },
		}, []string{"ui"})
	}()
	waitFor(t, "the page's URL", func() bool { return strings.HasSuffix(stdout.String(), "\n") }, func() string { return stdout.String() + stderr.String() })
	resp, err := http.Get(strings.TrimSpace(stdout.String()))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "<html") {
		t.Errorf("%s, %v: %s", resp.Status, err, body)
	}
	cancel()
	if code := <-ended; code != 0 || stderr.String() != "table records, Region us-east-1, account unknown\n" {
		t.Errorf("code %d, %q", code, stderr.String())
	}
}
