package dynamotest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/serverstest"
	"github.com/samekey/samekey/internal/testkit/dbfault"
)

const (
	newJava = serverstest.NewJava
	noMaven = "Java with Maven: mvn isn't in PATH: install Apache Maven"
	noVar   = "AWS_ENDPOINT_URL_DYNAMODB: not set"
	noJava  = "Java 17 or newer: JAVA_HOME isn't set, java isn't in PATH: install a Java 17 runtime"
	noShip  = "docker compose: docker isn't in PATH: install Docker with its compose plugin"
)

func TestFindTakesTheEndpointOfTheEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name, endpoint, allow string
		want                  string // "" if refused
	}{
		{"IPv4", "http://127.0.0.1:8000", "", "http://127.0.0.1:8000"},
		{"another address of loopback", "http://127.0.0.9:8000", "", "http://127.0.0.9:8000"},
		{"IPv6", "http://[::1]:8000", "", "http://[::1]:8000"},
		{"a name", "http://LocalHost:8000", "", "http://LocalHost:8000"},
		{"a slash at the end", "https://localhost:8000/", "", "https://localhost:8000"},
		{"remote", "https://dynamodb.example:8000", "", ""},
		{"remote by address", "http://192.0.2.1:8000", "", ""},
		{"every interface", "http://0.0.0.0:8000", "", ""},
		{"a remote name that looks local", "http://localhost.example:8000", "", ""},
		{"remote and allowed", "http://192.0.2.1:8000", "1", "http://192.0.2.1:8000"},
		{"remote and allowed by another word", "http://192.0.2.1:8000", "true", ""},
		{"no scheme", "localhost:8000", "", ""},
		{"no scheme, a number", "127.0.0.1:8000", "", ""},
		{"no host", "http://:8000", "", ""},
		{"another scheme", "ftp://127.0.0.1:8000", "1", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Java is there to be found: the variable comes first.
			bare(t, map[string]string{"java": newJava})
			t.Setenv(envEndpoint, tt.endpoint)
			t.Setenv(envAllowRemote, tt.allow)
			db, err := Find(t.Context())
			if tt.want == "" {
				if err == nil || errors.Is(err, ErrUnavailable) {
					t.Fatalf("Find: got %v, want an error that is no reason to skip", err)
				}
				if !strings.HasPrefix(err.Error(), "dynamotest: AWS_ENDPOINT_URL_DYNAMODB: ") {
					t.Errorf("Find: error %q doesn't name the variable", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if db.Endpoint != tt.want {
				t.Errorf("Endpoint: got %s, want %s", db.Endpoint, tt.want)
			}
			if err := db.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

func TestFindNamesWhatIsMissing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is missing differs where there is no loopback shim")
	}
	for _, tt := range []struct {
		name    string
		scripts map[string]string
		want    []string
	}{
		{"everything", nil, []string{noVar, noJava, noShip}},
		{
			"a newer Java",
			map[string]string{"java": `echo 'java version "1.8.0_292"' >&2`},
			[]string{noVar, "Java 17 or newer: JAVA_HOME isn't set, PATH/java is Java 8: install a Java 17 runtime", noShip},
		},
		{
			"a Java that works",
			map[string]string{"java": `echo "no runtime present" >&2; exit 1`},
			[]string{noVar, "Java 17 or newer: JAVA_HOME isn't set, PATH/java -version: exit status 1: no runtime present: install a Java 17 runtime", noShip},
		},
		{
			"a C compiler",
			map[string]string{"java": newJava},
			[]string{noVar, "Java: DynamoDB Local listens on every interface, and the shim against it needs a C compiler: cc isn't in PATH: install one, or set DYNAMOTEST_ALL_INTERFACES=1 to let it listen", noShip},
		},
		{
			"Maven",
			map[string]string{"java": newJava, "cc": ""},
			[]string{noVar, "Java with cached jars: no jars in CACHE/dynamodb-local-3.3.1", noMaven, noShip},
		},
		{
			"the repository",
			map[string]string{"java": newJava, "cc": "", "mvn": "echo unreachable; exit 1"},
			[]string{noVar, "Java with cached jars: no jars in CACHE/dynamodb-local-3.3.1", "Java with Maven: mvn couldn't get the jars: exit status 1: unreachable", noShip},
		},
		{
			"Docker's compose plugin",
			map[string]string{"docker": "echo unknown command >&2; exit 1"},
			[]string{noVar, noJava, "docker compose: docker compose version: exit status 1: unknown command: install Docker's compose plugin"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bare(t, tt.scripts)
			got := findNothing(t)
			root, err := servers.CacheRoot(envCache)
			if err != nil {
				t.Fatal(err)
			}
			path := commandPath()
			for i := range got {
				got[i] = strings.NewReplacer(root, "CACHE", path, "PATH").Replace(got[i])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindRefusesARelativeCache(t *testing.T) {
	bare(t, map[string]string{"java": newJava})
	t.Setenv(envCache, "cache")
	if _, err := Find(t.Context()); err == nil || errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), envCache) {
		t.Errorf("Find: got %v, want an error that names %s and is no reason to skip", err, envCache)
	}
}

func TestFindTellsACancelledSearchFromAMissingDatabase(t *testing.T) {
	bare(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Find(ctx); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUnavailable) {
		t.Errorf("Find: got %v, want context.Canceled and not ErrUnavailable", err)
	}
}

// DynamoDB Local breaks connections when it is busy.
func TestClientRepeatsAReadWhoseConnectionBroke(t *testing.T) {
	t.Parallel()
	sent := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if sent++; sent == 1 {
			w.Header().Set("Content-Length", "1000")
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "{}")
	}))
	defer srv.Close()
	db := &DB{Endpoint: srv.URL}
	defer db.Close()
	if _, err := db.Client().Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("orders")}); err != nil || sent != 2 {
		t.Errorf("Scan: %v after %d requests, want no error after 2", err, sent)
	}
}

func TestClientCanBeChangedByItsOptions(t *testing.T) {
	t.Parallel()
	var seen http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer srv.Close()
	db := &DB{Endpoint: srv.URL}
	defer db.Close()
	tr := &dbfault.Transport{Base: db.handle.HTTP().Transport}
	client := db.Client(func(o *dynamodb.Options) {
		o.Region = "eu-west-1"
		o.HTTPClient = &http.Client{Transport: tr}
	})
	if _, err := client.ListTables(t.Context(), nil); err == nil {
		t.Error("ListTables: got no error from a server that answers 500")
	}
	if auth := seen.Get("Authorization"); !strings.Contains(auth, "Credential=dynamotest/") || !strings.Contains(auth, "/eu-west-1/") {
		t.Errorf("Authorization: got %q, want the test credentials and the region set by the option", auth)
	}
	if got := tr.Total(); got != 1 {
		t.Errorf("requests: got %d, want 1: no retries", got)
	}
}

func TestClientRefusesADBWithoutAnEndpoint(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("Client of a zero DB didn't panic")
		}
	}()
	new(DB).Client()
}

func TestCloseOfADBThatStartedNothing(t *testing.T) {
	t.Parallel()
	for name, db := range map[string]*DB{"nil": nil, "zero": {}, "foreign": {Endpoint: "http://127.0.0.1:8000"}} {
		for range 2 {
			if err := db.Close(); err != nil {
				t.Errorf("%s: Close: %v", name, err)
			}
		}
	}
}

func TestCloseKeepsItsError(t *testing.T) {
	t.Parallel()
	calls := 0
	cause := errors.New("no permission")
	db := &DB{handle: servers.Handle{Stop: func() error { calls++; return cause }}}
	for range 2 {
		if err := db.Close(); !errors.Is(err, cause) {
			t.Errorf("Close: got %v, want %v", err, cause)
		}
	}
	if calls != 1 {
		t.Errorf("the database was ended %d times, want once", calls)
	}
}
