package dynamotest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A fake docker logs what it is asked, with the first line of the file it is
// given, and answers the question for the port with $DOCKER_PORT.
const fakeDocker = `read -r line
echo "$* < $line" >>"$DOCKER_LOG"
case "$*" in *" port "*) echo "$DOCKER_PORT" ;; *" $DOCKER_FAILS "*) echo "no daemon" >&2; exit 1 ;; esac
`

// emptyDatabase answers every request as ListTables is answered.
func emptyDatabase() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"TableNames":[]}`)
	}))
}

func withDocker(t *testing.T, port, fails string) (asked func() []string) {
	t.Helper()
	bare(t, map[string]string{"docker": fakeDocker})
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("DOCKER_LOG", log)
	t.Setenv("DOCKER_PORT", port)
	t.Setenv("DOCKER_FAILS", fails)
	return func() []string {
		b, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		// compose --project-name dynamotest-… --file - VERB … < # DynamoDB Local …
		project := ""
		for i, line := range lines {
			f := strings.Fields(line)
			if f[1] == "version" {
				lines[i] = f[1]
				continue
			}
			if project == "" {
				project = f[2]
			}
			want := []string{"compose", "--project-name", project, "--file", "-"}
			if !cmp.Equal(want, f[:5]) || !strings.HasPrefix(project, "dynamotest-") || !strings.Contains(line, "< # DynamoDB Local") {
				t.Errorf("docker was asked %q, want it to begin with %q", line, want)
			}
			lines[i] = f[5]
		}
		return lines
	}
}

func TestFindFallsBackToCompose(t *testing.T) {
	srv := emptyDatabase()
	defer srv.Close()
	asked := withDocker(t, strings.TrimPrefix(srv.URL, "http://"), "nothing")
	db, err := Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if db.Endpoint != srv.URL {
		t.Errorf("Endpoint: got %s, want %s", db.Endpoint, srv.URL)
	}
	for range 2 {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if diff := cmp.Diff([]string{"version", "up", "port", "down"}, asked()); diff != "" {
		t.Errorf("docker was asked (-want +got):\n%s", diff)
	}
}

func TestComposeLeavesNothingBehindWhenItFails(t *testing.T) {
	failing := httptest.NewServer(http.NotFoundHandler())
	defer failing.Close()
	for _, tt := range []struct {
		name, port, fails string
		asked             []string
		want              string
	}{
		{"no daemon", "", "up", []string{"version", "up", "down"}, "docker compose: docker compose --project-name dynamotest-"},
		{"on every interface", "0.0.0.0:8000", "nothing", []string{"version", "up", "port", "down"}, "docker compose: docker published the database on 0.0.0.0:8000 instead of loopback"},
		{"it fails every request", failing.Listener.Addr().String(), "nothing", []string{"version", "up", "port", "down"}, "docker compose: DynamoDB Local runs, but its first request failed"},
		{"no port", "?", "nothing", []string{"version", "up", "port", "down"}, "docker compose: docker compose port says"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := withDocker(t, tt.port, tt.fails)
			reasons := findNothing(t)
			if got := reasons[len(reasons)-1]; !strings.HasPrefix(got, tt.want) {
				t.Errorf("reason: got %q, want %q", got, tt.want)
			}
			if diff := cmp.Diff(tt.asked, asked()); diff != "" {
				t.Errorf("docker was asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCloseTellsThatComposeFailed(t *testing.T) {
	srv := emptyDatabase()
	defer srv.Close()
	withDocker(t, strings.TrimPrefix(srv.URL, "http://"), "down")
	db, err := Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err == nil || errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no daemon") {
		t.Errorf("Close: got %v, want what docker said", err)
	}
}
