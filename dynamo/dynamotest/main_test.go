package dynamotest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestMain(m *testing.M) {
	_ = os.Unsetenv(envSeparate) // the tests here say when it counts; fails never
	if serverstest.HelperMain(func(ctx context.Context) (string, error) {
		db, err := Find(ctx)
		if err != nil {
			return "", err
		}
		return db.Endpoint, nil
	}) {
		return
	}
	code := Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// findOwn finds a database that is not an endpoint of the environment, for
// tests that end it. They skip where Start would.
func findOwn(t *testing.T) *DB {
	t.Helper()
	t.Setenv(envEndpoint, "")
	db := (&sharedDB{skips: &servers.Missed}).start(t, Find)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// bare gives the test an environment in which Find finds nothing but the
// scripts.
func bare(t *testing.T, scripts map[string]string) {
	t.Helper()
	serverstest.Bare(t, envCache, scripts, envEndpoint, envAllowRemote, envAllInterfaces, envRequire)
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
