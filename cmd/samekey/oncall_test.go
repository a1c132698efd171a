package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/samekey/samekey/deploy"
	"github.com/samekey/samekey/internal/background/completer"
	"github.com/samekey/samekey/internal/background/worker"
	"github.com/samekey/samekey/internal/testkit/alarmtest"
	"github.com/samekey/samekey/lambda/metrics"
)

const onCallPage = "../../docs/operate/runbook.md"

// noTickets is a queue that loses all tickets.
type noTickets struct{ completer.QueueAPI }

// This test follows the guide for people on call: a provider fails for
// good, the alarm fires, the page's commands explain and settle the
// request, the client's retry gets the settled answer, and the alarm ends.
func TestOnCallWalk(t *testing.T) {
	d := newDesk(t)
	var log bytes.Buffer
	m := metrics.New(&log, "rides")
	w := worker.New(d.client, d.store, completer.NewQueue(noTickets{}, "url"), func(o *worker.Options) { o.Hooks = m.StreamHooks() })
	alarms, err := alarmtest.Parse(deploy.Nested(), map[string]string{"App": "rides"})
	if err != nil {
		t.Fatal(err)
	}
	var data alarmtest.Data
	// alarm counts the waiting records at these minutes, like the worker's
	// schedule, and returns the alarm's state.
	begun := time.Now()
	alarm := func(minute time.Duration) alarmtest.State {
		t.Helper()
		log.Reset()
		if _, err := w.Invoke(t.Context(), []byte(`{"source":"aws.scheduler","task":"count"}`)); err != nil {
			t.Fatal(err)
		}
		if err := data.EMFAt(log.Bytes(), begun.Add(minute*time.Minute)); err != nil {
			t.Fatal(err)
		}
		return alarms["WaitingUnknownAlarm"].At(data, begun.Add((minute+1)*time.Minute))
	}

	if s := alarm(0); s != alarmtest.OK {
		t.Fatalf("the alarm is %s before the trouble", s)
	}
	calls := 0
	if _, err := d.pay(t.Context(), &calls); err == nil {
		t.Fatal("the provider answered")
	}
	if s := alarm(5); s != alarmtest.Firing {
		t.Fatalf("the alarm is %s in the trouble", s)
	}

	d.followPage(t, onCallPage)

	res, err := d.pay(t.Context(), &calls)
	if err != nil || res.Status != 502 || string(res.Body) != `{"error":"payment_cancelled"}` || calls != 1 {
		t.Errorf("the client's retry: %d %s, %v; the provider was called %d times", res.Status, res.Body, err, calls)
	}
	if s := alarm(10); s != alarmtest.OK {
		t.Errorf("the alarm is %s after the mending", s)
	}
	retried, err := d.pay(t.Context(), &calls)
	if err != nil || retried.Status != res.Status || !bytes.Equal(retried.Body, res.Body) {
		t.Errorf("another retry: %d %s, %v", retried.Status, retried.Body, err)
	}
}

// followPage runs the commands in a page's console blocks, and compares their
// output with the page. With -update it writes the output into the page.
func (d *desk) followPage(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page, rest := "", string(raw)
	for {
		before, after, found := strings.Cut(rest, "```console\n$ samekey ")
		page += before
		if !found {
			break
		}
		block, tail, _ := strings.Cut(after, "```\n")
		command, _, _ := strings.Cut(block, "\n")
		code, stdout, stderr := callWith(t, "y\n", d.env, commandWords(command)...)
		if code != 0 {
			t.Fatalf("samekey %s: code %d: %s", command, code, stderr)
		}
		shown := strings.ReplaceAll(scrubbed(stderr+stdout), "table desk-OPERATION at ENDPOINT", "table idempotency, Region eu-west-1, account 123456789012")
		if shown != "" && !strings.HasSuffix(shown, "\n") {
			shown += "\n"
		}
		page += "```console\n$ samekey " + command + "\n" + shown + "```\n"
		rest = tail
	}
	switch {
	case page == string(raw):
	case *update:
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is out of date (go test -C cmd/samekey . -run OnCall -update); it should say:\n%s", path, page)
	}
}

// commandWords splits a command at spaces outside of single quotes.
func commandWords(command string) (all []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
