package stack

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/samekey/samekey/dynamo/dynamotest"
	"github.com/samekey/samekey/internal/servers/lambdarun"
)

// Made by TestMain: a folder with the template and the function, and a program.
var stackDir, worldProgram string

func TestMain(m *testing.M) { os.Exit(mainOf(m)) }

func mainOf(m *testing.M) int {
	// A stack and its programs take Region and credentials of the environment, and these name one database.
	for name, value := range map[string]string{
		"DYNAMOTEST_SEPARATE": "0", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "dynamotest", "AWS_SECRET_ACCESS_KEY": "dynamotest", "AWS_SESSION_TOKEN": "",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "stack")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a test's folder
	stackDir, worldProgram = dir, filepath.Join(dir, "world")
	template, err := os.ReadFile("testdata/template.yaml")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "template.yaml"), template, 0o600); err != nil {
		panic(err)
	}
	for pkg, out := range map[string]string{"./testdata/fn": filepath.Join(dir, "dist", "bootstrap"), "./testdata/world": worldProgram} {
		if err := lambdarun.BuildBootstrap(context.Background(), pkg, out); err != nil {
			panic(err)
		}
	}
	return dynamotest.Main(m)
}
