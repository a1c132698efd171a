package dynamotest

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/serverstest"
)

// A database listens on loopback only, seen without the code that checks it; with separate databases two
// tests have tables of their own; and it ends when it is closed, or with its parent.
func TestDatabaseFromStartToEnd(t *testing.T) {
	t.Setenv(envSeparate, "1")
	t.Setenv(envEndpoint, "")
	s := sharedDB{skips: &servers.Missed}
	t.Cleanup(func() { _ = s.db.Close() })
	one := s.start(t, Find)
	if got, want := serverstest.Loopback(t, one.Endpoint); !cmp.Equal(got, want) || !strings.HasPrefix(one.Endpoint, "http://127.0.0.1:") {
		t.Errorf("%s listens on %v, want %v", one.Endpoint, got, want)
	}
	if same := s.start(t, Find); !slices.Equal(one.Env(), same.Env()) {
		t.Errorf("a test has %v and then %v", one.Env(), same.Env())
	}
	if key, err := one.Client().Options().Credentials.Retrieve(t.Context()); err != nil || one.Env()[0] != "AWS_ACCESS_KEY_ID="+key.AccessKeyID {
		t.Errorf("programs get %v, clients %s, %v", one.Env(), key.AccessKeyID, err)
	}
	other := one.separate("another test")
	if _, err := one.Client().CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName: aws.String("orders"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
	tables := func(db *DB) string {
		t.Helper()
		out, err := db.Client().ListTables(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(out.TableNames, " ")
	}
	if tables(one) != "orders" || tables(other) != "" {
		t.Errorf("the tests see %q and %q, want orders for one", tables(one), tables(other))
	}
	if err := other.Close(); err != nil || tables(one) != "orders" {
		t.Errorf("a test closes the database of the others: %v", err)
	}
	for range 2 {
		if err := s.db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	serverstest.WaitEnd(t, one.Endpoint)
	if _, err := one.Client().ListTables(t.Context(), nil); err == nil {
		t.Error("ListTables after Close: got an answer")
	}
	if runtime.GOOS == "linux" { // elsewhere it keeps running
		root, err := servers.CacheRoot(envCache)
		if err != nil {
			t.Fatal(err)
		}
		serverstest.EndsWithAKilledParent(t, envEndpoint, ddbLocal().Dir(root))
	}
}

// Without separate databases all tests see the same tables.
func TestSharedDatabase(t *testing.T) {
	for separate, shared := range map[string]bool{"1": false, "0": true} {
		t.Setenv(envSeparate, separate)
		process := strings.Join(localCommand("java", "", "", 1, nil).Args, " ")
		for what, args := range map[string]string{"a process": process, "a container": string(composeFile())} {
			if strings.Contains(args, "-sharedDb") != shared || !strings.Contains(args, " -inMemory") {
				t.Errorf("%s=%s: %s gets %s", envSeparate, separate, what, args)
			}
		}
	}
}

// A database gets the variables of the user's, but no credentials.
func TestTheDatabaseGetsNoAWSVariables(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	cmd := localCommand("java", t.TempDir(), t.TempDir(), 1, []string{"LD_PRELOAD=./x.so"})
	env := strings.Join(cmd.Env, "\n")
	if strings.Contains(env, "AWS_") {
		t.Error("the environment has AWS variables")
	}
	for _, want := range []string{"PATH=", "DDB_LOCAL_TELEMETRY=0", "LD_PRELOAD=./x.so"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment lacks %s", want)
		}
	}
}

func TestStartFromColdCache(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads DynamoDB Local")
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		t.Skip("needs Maven")
	}
	// A home folder may have a name that a class path or LD_PRELOAD can't hold.
	t.Setenv(envCache, t.TempDir()+"/My cache: a,b;c")
	db := findOwn(t)
	if _, err := db.Client().ListTables(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestStartTellsWhyTheProcessEnded(t *testing.T) {
	if err := canKeepLocal(); err != nil {
		t.Skip(err)
	}
	java := serverstest.Commands(t, map[string]string{"java": "echo native library is missing >&2; exit 3"}) + "/java"
	_, err := startLocal(t.Context(), java, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "ended early: exit status 3: native library is missing") {
		t.Errorf("startLocal: got %v, want the exit status and what was printed", err)
	}
}

func TestStartTakesAnotherPortIfTheFirstIsTaken(t *testing.T) {
	if err := canKeepLocal(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	log := dir + "/log"
	t.Setenv("JAVA_LOG", log)
	java := serverstest.Commands(t, map[string]string{"java": `echo x >>"$JAVA_LOG"; echo "java.io.IOException: Failed to bind to 0.0.0.0/0.0.0.0:1" >&2; exit 1`}) + "/java"
	if _, err := startLocal(t.Context(), java, dir); !errors.Is(err, servers.ErrPortTaken) {
		t.Errorf("startLocal: got %v, want %v", err, servers.ErrPortTaken)
	}
	if b, err := os.ReadFile(log); err != nil || len(b) != 2*5 {
		t.Errorf("tried %d times (%v), want %d", len(b)/2, err, 5)
	}
}
