package dynamotest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/samekey/samekey/internal/servers"
	"github.com/samekey/samekey/internal/servers/serverstest"
)

func TestFindStartsADatabaseAndCloseEndsIt(t *testing.T) {
	db := findOwn(t)
	if !strings.HasPrefix(db.Endpoint, "http://127.0.0.1:") {
		t.Errorf("Endpoint: got %s, want an address of loopback", db.Endpoint)
	}
	client := db.Client()
	createTable(t, client, "orders")
	put := &dynamodb.PutItemInput{
		TableName:                           aws.String("orders"),
		Item:                                map[string]types.AttributeValue{"pk": str("a"), "owner": str("first")},
		ConditionExpression:                 aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if _, err := client.PutItem(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	put.Item["owner"] = str("second")
	_, err := client.PutItem(t.Context(), put)
	failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
	if !ok {
		t.Fatalf("second put: got %v, want a failed condition", err)
	}
	if got, ok := failed.Item["owner"].(*types.AttributeValueMemberS); !ok || got.Value != "first" {
		t.Errorf("item of the failed condition: got %v, want the first one", failed.Item)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	serverstest.WaitEnd(t, db.Endpoint)
	if _, err := client.ListTables(t.Context(), nil); err == nil {
		t.Error("ListTables after Close: got an answer")
	}
	if err := db.Close(); err != nil {
		t.Errorf("second Close: %v", err)
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

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func createTable(t *testing.T, client *dynamodb.Client, name string) {
	t.Helper()
	if _, err := client.CreateTable(t.Context(), &dynamodb.CreateTableInput{
		TableName:            aws.String(name),
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("pk"), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("pk"), KeyType: types.KeyTypeHash}},
	}); err != nil {
		t.Fatal(err)
	}
}
