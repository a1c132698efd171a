package stack

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOverridesAreReadFromTheEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"LOCAL_FUNCTION_TIMEOUT": "2s", "LOCAL_LEASE_MARGIN": "500ms", "LOCAL_GRACE": "0s", "LOCAL_STREAM_WINDOW": "0", "LOCAL_SWEEP_EVERY": "1m",
		"LOCAL_CONCURRENCY": "8",
	}
	got, err := ReadOverrides(func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	want := Overrides{
		FunctionTimeout: new(2 * time.Second), LeaseMargin: new(500 * time.Millisecond), Grace: new(time.Duration(0)),
		StreamWindow: new(time.Duration(0)), SweepEvery: new(time.Minute), PerProcess: new(8),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, err = ReadOverrides(func(string) string { return "" })
	if diff := cmp.Diff(Overrides{}, got); diff != "" || err != nil {
		t.Errorf("nothing set: %v\n%s", err, diff)
	}
}

func TestBadOverridesAreAllNamed(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"LOCAL_FUNCTION_TIMEOUT": "0s", "LOCAL_LEASE_MARGIN": "2", "LOCAL_GRACE": "soon", "LOCAL_STREAM_WINDOW": "-1s", "LOCAL_SWEEP_EVERY": "1s",
		"LOCAL_CONCURRENCY": "0",
	}
	_, err := ReadOverrides(func(name string) string { return env[name] })
	if err == nil {
		t.Fatal("no error")
	}
	for name := range env {
		if got := strings.Contains(err.Error(), name); got != (name != "LOCAL_SWEEP_EVERY") {
			t.Errorf("error names %s: %t\n%v", name, got, err)
		}
	}
}

func TestURLsOfProcessesAreKnownToTheFunctions(t *testing.T) {
	t.Parallel()
	opts, err := Options{
		Processes: []Process{
			{Name: "world", Command: []string{"world"}, URL: "http://127.0.0.1:0/v1"},
			{Name: "other", Command: []string{"other"}, URL: "http://127.0.0.1:3009"},
			{Name: "silent", Command: []string{"silent"}},
		},
		Parameters:  map[string]string{"World": "{world}/charges"},
		Environment: map[string]string{"BOTH": "{world} {other} {silent}"},
	}.withDefaults(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	world := opts.Processes[0].URL
	if strings.Contains(world, ":0/") || !strings.HasPrefix(world, "http://127.0.0.1:") || !strings.HasSuffix(world, "/v1") {
		t.Errorf("URL is %s", world)
	}
	if got, want := opts.Parameters["World"], world+"/charges"; got != want {
		t.Errorf("parameter is %s, want %s", got, want)
	}
	if got, want := opts.Environment["BOTH"], world+" http://127.0.0.1:3009 {silent}"; got != want {
		t.Errorf("variable is %s, want %s", got, want)
	}
	if got := opts.Processes[1].portVariable(); got != "LOCAL_OTHER_PORT=3009" {
		t.Errorf("port is told by %s", got)
	}
}

func TestBadProcessesAreRefused(t *testing.T) {
	t.Parallel()
	command := []string{"true"}
	for name, processes := range map[string][]Process{
		"no name":               {{Command: command}},
		"a key of the line":     {{Name: "control", Command: command}},
		"the same name":         {{Name: "a", Command: command}, {Name: "a", Command: command}},
		"no command":            {{Name: "a"}},
		"a URL without a port":  {{Name: "a", Command: command, URL: "http://127.0.0.1"}},
		"a URL of another kind": {{Name: "a", Command: command, URL: "ftp://127.0.0.1:1"}},
	} {
		if _, err := (Options{Processes: processes}).withDefaults(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
