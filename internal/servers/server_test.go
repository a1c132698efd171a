package servers

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/samekey/samekey/internal/servers/serverstest"
)

// helperServer is this test binary as a server.
func helperServer(dir string) Server {
	return Server{
		Name: "the helper", Dir: dir,
		Command: func(_ string, port int) *exec.Cmd {
			cmd := exec.Command(os.Args[0], "127.0.0.1:"+strconv.Itoa(port))
			cmd.Env = append(os.Environ(), envHelper+"=serve")
			return cmd
		},
		PortTaken: []string{"Failed to bind", "address already in use"},
	}
}

func TestStartAnswersAndStopEndsIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := helperServer(dir).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(r.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if !strings.Contains(r.Output(), "serving") {
		t.Errorf("output %q", r.Output())
	}
	for range 2 {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	}
	if resp, err := http.Get(r.Endpoint); err == nil {
		_ = resp.Body.Close()
		t.Error("it answers after Stop")
	}
	http.DefaultClient.CloseIdleConnections()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestStartTellsWhyTheProcessEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := Server{Name: "the script", Dir: dir, Command: func(string, int) *exec.Cmd {
		return exec.Command("sh", "-c", "echo native library is missing >&2; exit 3")
	}}
	_, err := s.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the script ended early: exit status 3: native library is missing") {
		t.Errorf("got %v, want the exit status and what was printed", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestStartTakesAnotherPortIfTheFirstIsTaken(t *testing.T) {
	log := t.TempDir() + "/log"
	t.Setenv("SERVER_LOG", log)
	script := serverstest.Commands(t, map[string]string{"server": `echo "$1" >>"$SERVER_LOG"; echo "java.io.IOException: Failed to bind to 0.0.0.0/0.0.0.0:1" >&2; exit 1`}) + "/server"
	s := helperServer(t.TempDir())
	s.Command = func(_ string, port int) *exec.Cmd { return exec.Command(script, strconv.Itoa(port)) }
	if _, err := s.Start(t.Context()); !errors.Is(err, ErrPortTaken) {
		t.Errorf("got %v, want %v", err, ErrPortTaken)
	}
	b, err := os.ReadFile(log)
	if ports := strings.Fields(string(b)); err != nil || len(ports) != portTries {
		t.Errorf("tried %v (%v), want %d ports", ports, err, portTries)
	}
}

func TestCacheRoot(t *testing.T) {
	const variable = "LOCALSERVER_TEST_CACHE"
	absolute := t.TempDir()
	for value, want := range map[string]string{absolute: absolute, "cache": ""} {
		t.Setenv(variable, value)
		got, err := CacheRoot(variable)
		if got != want || (err == nil) == (want == "") {
			t.Errorf("%s: got %q, %v", value, got, err)
		}
	}
	t.Setenv(variable, "")
	if got, err := CacheRoot(variable); err != nil || !strings.HasSuffix(got, "/samekey") {
		t.Errorf("unset: got %q, %v", got, err)
	}
}

func TestRequired(t *testing.T) {
	const variable = "LOCALSERVER_TEST_REQUIRED"
	for value, want := range map[string]bool{"": false, "0": false, "false": false, "1": true, "yes": true, "no": true} {
		t.Setenv(variable, value)
		if got := Required(variable); got != want {
			t.Errorf("%q: got %v", value, got)
		}
	}
}
